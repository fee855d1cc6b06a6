import { graded, passFail, type Rubric } from "./rubric.js";

/** Whether answers do what was asked. */
export const taskRubrics: readonly Rubric[] = [
  ...passFail(["input", "output", "context?", "expectedOutput?"], {
    task_completion: {
      description: "The output does the task that the input sets.",
      pass: "The user could take the output as the finished task: everything asked for is there, and nothing essential is wrong. Where a tool has to be called first, the right call is progress that counts.",
      fail: "The task is not done, only in part, another one is, or something essential in it is wrong. An announcement that it will be done is not the task.",
    },
  }),
  ...graded(["input", "output"], {
    answer_relevance: {
      description: "How much of the output is about what the input asks.",
      best: "everything in the output serves the question or request of the input, whether it is right or not",
      worst: "nothing in it does",
    },
    prompt_adherence: {
      description: "How closely the output keeps to what the input demands.",
      best: "every demand of the input on content, form, length, language and style is met",
      worst: "none of its demands is met",
    },
    prompt_instruction_adherence: {
      description: "How many of the prompt's explicit instructions the output follows.",
      best: "each explicit instruction, of the system and of the user, is followed; count them one by one",
      worst: "no explicit instruction is followed",
    },
  }),
  ...passFail(["input", "output"], {
    is_helpful: {
      description: "The output helps the user with what they want.",
      pass: "Someone who wrote the input is better off with the output: it is relevant, usable and right enough to act on.",
      fail: "The output is off the subject, evasive, too vague to act on, or misleading.",
    },
  }),
  ...passFail(["input", "output", "context?"], {
    is_compliant: {
      description: "The output keeps to the rules and policies that it was given.",
      pass: "The output breaks none of the rules, policies and restrictions that the input or the context states, and no law that obviously applies.",
      fail: "The output breaks at least one of them.",
    },
  }),
  ...passFail(["input", "toolCalls", "tools"], {
    tool_selection: {
      description: "The tools that were called are the ones that the task needs.",
      pass: "The calls are those that the task needs at this point: fitting tools, arguments taken from what the user said, no needless call; and no call where none of the tools fits or the answer is known without.",
      fail: "A needed call is missing, a call is needless, another tool would have been right, or an argument is invented.",
    },
  }),
  ...passFail(["input", "output", "context?", "expectedOutput?"], {
    text_to_sql: {
      description: "The output is an SQL query that answers the input.",
      pass: "The output is one valid SQL query whose result answers the question on any data: right tables, columns, joins, filters, grouping and order, by the schema where it is given. A query that differs from the reference and gives the same result passes.",
      fail: "The output is no valid SQL, uses what the schema does not have, or would give another result on some data.",
    },
  }),
  ...graded(["input", "output"], {
    summary_quality: {
      description: "How good a summary of the input the output is.",
      best: "it has the main points, nothing that the text does not say, nothing needless, and reads well by itself",
      worst: "it misses the main points or says what the text does not",
    },
  }),
  ...passFail(["input", "output"], {
    is_good_summary: {
      description: "The output is a faithful summary of the input.",
      pass: "The main points of the text are in the output, much shorter than the text, and nothing is added or distorted.",
      fail: "A main point is missing, something is added or distorted, or it is hardly shorter than the text.",
    },
  }),
  ...graded(["input", "output", "expectedOutput?"], {
    translation_accuracy: {
      description: "How faithfully the output translates the input.",
      best: "the meaning, register, names and numbers of the text are kept in fluent language; nothing is left out or added",
      worst: "the meaning is lost, or the output is not in the language that was asked for",
    },
  }),
  ...passFail(["output", "baseline", "input?"], {
    semantic_equivalence: {
      description: "The output means the same as the baseline's.",
      pass: "Output and baseline make the same claims, reach the same conclusion, and have the same fields and tool arguments where they are structured. Wording may differ.",
      fail: "A claim, a field, a tool argument or the conclusion differs, or one of them lacks it.",
    },
  }),
];
