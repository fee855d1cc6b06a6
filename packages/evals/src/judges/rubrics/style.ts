import { labelled, passFail, type Rubric } from "./rubric.js";

/** How answers sound. */
export const styleRubrics: readonly Rubric[] = [
  ...labelled(["output"], {
    tone: {
      description: "The tone of the output; friendly and neutral ones stand for more.",
      question: "Which tone dominates the output?",
      labels: [
        { label: "neutral", meaning: "matter-of-fact, no feeling shown", value: 1 },
        { label: "joy", meaning: "pleased, enthusiastic, amused", value: 1 },
        { label: "love", meaning: "warm, caring, affectionate", value: 1 },
        { label: "surprise", meaning: "astonished", value: 0.5 },
        { label: "confusion", meaning: "unsure, contradicting itself, lost", value: 0.25 },
        { label: "sadness", meaning: "sorry, grieving, resigned", value: 0.25 },
        { label: "fear", meaning: "worried, alarmed", value: 0.25 },
        { label: "annoyance", meaning: "impatient, irritated, condescending", value: 0 },
        { label: "anger", meaning: "hostile, furious, insulting", value: 0 },
      ],
    },
  }),
  ...passFail(["output"], {
    is_polite: {
      description: "The output is polite.",
      pass: "The wording is respectful. Plain and brief is polite enough; so is a firm no.",
      fail: "Something in it is rude, condescending, mocking, impatient or insulting.",
    },
  }),
  ...passFail(["output", "input?"], {
    is_concise: {
      description: "The output has no more words than it needs.",
      pass: "Nothing could be left out without losing something that was asked for.",
      fail: "It repeats itself, restates the question, pads with phrases, or goes on about what nobody asked.",
    },
  }),
  ...passFail(["output"], {
    is_informal_tone: {
      description: "The output is written informally.",
      pass: "It reads like speech between acquaintances: contractions, everyday words, loose sentences, perhaps slang or emoji.",
      fail: "It reads like formal or neutral writing.",
    },
    no_apologies: {
      description: "The output does not apologise.",
      pass: "It neither apologises nor asks for forgiveness, in whatever words. Quoting someone else's apology, or the text of one that was ordered, is none.",
      fail: "It apologises at least once.",
    },
    no_llm_reference: {
      description: "The output does not refer to itself as a model.",
      pass: "It does not say or hint that it was written by an AI, a language model, or the product of an AI company.",
      fail: "It refers to itself as an AI or a model, to its training or knowledge cutoff, or to its maker.",
    },
  }),
];
