import { Random } from "@octavo/statistics";
import type { RulerQuestion, RulerTask, RulerTaskName } from "./ruler-task.js";

/** RULER's questions over documents: those that hold the answer among others that do not. */
function questionTask(name: RulerTaskName): RulerTask {
  return {
    name,
    answerTokens: 32,
    match: "part",
    needs: "questions",
    draw({ random, questions }) {
      const asked = random.pick(questions);
      const others = random.shuffle(distractors(questions, asked));
      const shuffleSeed = random.integer(0, 2 ** 31);
      return {
        references: asked.answers,
        minSize: 0,
        maxSize: others.length,
        prompt(size) {
          const documents = new Random(shuffleSeed).shuffle([...asked.documents, ...others.slice(0, size)]);
          return [
            "Answer the question from the documents below.",
            "",
            ...documents.flatMap((document, index) => [`Document ${index + 1}:`, document, ""]),
            `Question: ${asked.question}`,
            "Reply with the answer and nothing else.",
          ].join("\n");
        },
      };
    },
  };
}

function distractors(questions: readonly RulerQuestion[], asked: RulerQuestion): string[] {
  const own = new Set(asked.documents);
  const others = new Set(questions.flatMap(({ documents }) => documents));
  return [...others].filter((document) => !own.has(document));
}

export const questionTasks: readonly RulerTask[] = [questionTask("qa_1"), questionTask("qa_2")];
