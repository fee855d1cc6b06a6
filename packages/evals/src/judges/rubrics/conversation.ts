import { frequencies, graded, labelled, passFail, type Rubric } from "./rubric.js";

/** Whole conversations, with the output as their last turn. */
export const conversationRubrics: readonly Rubric[] = [
  ...graded(["conversation", "output"], {
    conversation_coherence: {
      description: "How well the assistant's turns fit together and to the user's.",
      best: "every turn answers the one before, remembers what was said, and contradicts nothing",
      worst: "turns ignore each other, forget or contradict what was said",
    },
    conversation_resolution: {
      description: "How far the user's wishes are settled at the end of the conversation.",
      best: "everything that the user wanted is settled, or handed over with a clear next step",
      worst: "nothing that the user wanted is settled",
    },
  }),
  ...passFail(["conversation", "output", "context?"], {
    conversation_hallucination: {
      description: "The assistant invents nothing in the conversation.",
      pass: "The assistant claims no fact, earlier statement or finished action that the conversation, its tools' results or the context do not support.",
      fail: "It claims at least one.",
    },
    customer_agent_task_completion: {
      description: "The agent does what the customer came for.",
      pass: "At the end the customer's request is carried out, or rightly declined with the reason and an alternative.",
      fail: "It is left open, dropped, or wrongly reported as done.",
    },
    customer_agent_human_escalation: {
      description: "The agent hands over to a person when, and only when, it should.",
      pass: "It hands over, or offers to, where the customer asks for a person, is in danger or distress, or needs what the agent may not do; and not otherwise.",
      fail: "It holds the customer back in such a case, or hands over what it could settle.",
    },
  }),
  ...graded(["conversation", "output"], {
    customer_agent_context_retention: {
      description: "How well the agent keeps in mind what the customer has said.",
      best: "it uses all that was said and never asks for it again",
      worst: "it forgets or confuses what was said throughout",
    },
    customer_agent_interruption_handling: {
      description: "How well the agent deals with interruptions and changes of subject.",
      best: "it takes up each interruption and comes back to what was open; or there was none",
      worst: "it talks past them or loses what was open",
    },
    customer_agent_language_handling: {
      description: "How well the agent uses the customer's language.",
      best: "it answers in the customer's language and level, and follows when the customer changes it",
      worst: "it answers in another language, or so that this customer cannot follow",
    },
    customer_agent_prompt_conformance: {
      description: "How closely the agent keeps to its system instructions.",
      best: "role, scope, order of steps and forbidden things are kept to in every turn",
      worst: "its instructions are ignored",
    },
  }),
  ...labelled(["conversation", "output"], {
    customer_agent_clarification_seeking: {
      description: "How often the agent asks back where a request is unclear.",
      question: "Where a request is ambiguous or lacks something needed, does the agent ask, and only there?",
      labels: frequencies({
        always: "at every such place, and never needlessly; or there was no such place",
        never: "it guesses each time",
      }),
    },
    customer_agent_objection_handling: {
      description: "How often the agent deals well with objections.",
      question: "Does the agent take objections seriously, answer them truthfully and put no pressure on?",
      labels: frequencies({
        always: "every time; or there were none",
        never: "it brushes all of them aside",
      }),
    },
  }),
  ...labelled(["conversation", "output", "context?"], {
    customer_agent_query_handling: {
      description: "How often the agent answers the customer's questions rightly.",
      question: "Does the agent answer the questions that the customer asks, to the point and rightly?",
      labels: frequencies({ always: "every question", never: "no question" }),
    },
  }),
  ...labelled(["conversation", "output"], {
    customer_agent_loop_detection: {
      description: "How far the agent keeps out of loops.",
      question: "Does the conversation move on, without the agent repeating questions, answers or steps?",
      labels: frequencies({ always: "it moves on with every turn", never: "it goes round in circles" }),
    },
    customer_agent_termination_handling: {
      description: "How well the agent ends the conversation.",
      question: "Does the conversation end at the right moment and in the right way?",
      labels: [
        { label: "well", meaning: "all is settled and confirmed, or it rightly goes on", value: 1 },
        { label: "abruptly", meaning: "settled, but without confirming or taking leave", value: 0.5 },
        { label: "too late", meaning: "it drags on after all was settled", value: 0.5 },
        { label: "too early", meaning: "it ends with something open", value: 0 },
      ],
    },
    customer_agent_conversation_quality: {
      description: "How good the conversation is as a whole.",
      question: "How would a demanding customer rate this conversation as a whole?",
      labels: [
        { label: "excellent", meaning: "quick, right, pleasant", value: 1 },
        { label: "good", meaning: "small lapses", value: 0.75 },
        { label: "fair", meaning: "it came to a result, with effort", value: 0.5 },
        { label: "poor", meaning: "hardly of use", value: 0.25 },
        { label: "bad", meaning: "it made things worse", value: 0 },
      ],
    },
  }),
];
