import { graded, passFail, type Rubric } from "./rubric.js";

/** Whether answers follow from what they were given. */
export const groundingRubrics: readonly Rubric[] = [
  ...passFail(["output", "context", "input?"], {
    groundedness: {
      description: "Every claim of the output is supported by the context.",
      pass: "Each factual claim of the output is stated in the context or follows from it. Saying that the context does not hold the answer is grounded. Greetings and restatements of the question are no claims.",
      fail: "At least one factual claim is not supported by the context or contradicts it, even if it is true in the world.",
    },
  }),
  ...graded(["output", "context", "input?"], {
    context_adherence: {
      description: "How much of what the output says comes from the context.",
      best: "everything the output says comes from the context",
      worst: "nothing it says comes from the context, or it contradicts the context throughout",
    },
  }),
  ...graded(["input", "context"], {
    context_relevance: {
      description: "How much of the context helps to answer the input.",
      best: "the context holds all that is needed to answer the input and hardly anything else",
      worst: "nothing in the context helps to answer the input",
    },
  }),
  ...graded(["context", "expectedOutput", "input?"], {
    context_recall: {
      description: "How much of the expected output the context supports.",
      best: "everything that the expected output states is in the context or follows from it",
      worst: "nothing of it is: no answer could be right from this context alone",
    },
  }),
  ...passFail(["output", "context"], {
    chunk_attribution: {
      description: "The output makes use of the context.",
      pass: "At least one piece of information in the output can be traced to the context.",
      fail: "Nothing in the output can be traced to the context: it would read the same without it.",
    },
  }),
  ...graded(["output", "context", "input?"], {
    chunk_utilization: {
      description: "How much of the relevant part of the context the output uses.",
      best: "all of the context that bears on the matter is used in the output",
      worst: "none of the context is used",
    },
  }),
  ...passFail(["output", "context", "input?"], {
    detect_hallucination: {
      description: "The output invents nothing.",
      pass: "The output has no name, number, quotation, source, event or other detail that input and context do not give or imply.",
      fail: "The output has at least one detail that input and context neither give nor imply, or that they contradict.",
    },
  }),
  ...passFail(["input", "output", "context"], {
    is_factually_consistent: {
      description: "The output contradicts neither the context nor itself.",
      pass: "No statement of the output contradicts the context, the input, or another statement of the output. What the context leaves open is no contradiction.",
      fail: "At least one statement contradicts the context, the input, or another statement of the output.",
    },
  }),
  ...graded(["input", "output", "context?", "expectedOutput?"], {
    factual_accuracy: {
      description: "How much of what the output states as fact is right.",
      best: "every fact that the output states is right, by the reference and the context where they are given, else by what is generally known",
      worst: "what it states as fact is wrong",
    },
  }),
  ...graded(["input", "output", "context?"], {
    completeness: {
      description: "How much of what the input asks for the output covers.",
      best: "every part of every question and request in the input is dealt with",
      worst: "nothing that was asked for is dealt with",
    },
  }),
  ...passFail(["output", "expectedOutput", "input?"], {
    ground_truth_match: {
      description: "The output says the same as the expected output.",
      pass: "The output gives the same answer as the reference (any of them, where there are several). Wording, order and further correct detail do not matter; numbers, names, units and negations do.",
      fail: "The output gives another answer, lacks a part of the reference's answer, or adds something that contradicts it.",
    },
  }),
];
