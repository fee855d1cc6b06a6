import type { CaseMessage } from "../../cases/eval-case.js";

export const choiceLetters = "ABCDEFGHIJ";

/** Asks for the letter of one option, which is then compared as it is. */
export function askForLetter(question: string, options: readonly string[], before = ""): CaseMessage[] {
  const listed = options.map((option, index) => `${choiceLetters[index]}. ${option}`).join("\n");
  const letters = `${choiceLetters[0]} to ${choiceLetters[options.length - 1]}`;
  return [
    {
      role: "user",
      content: `${before}${question}\n\n${listed}\n\nAnswer with the letter of the right option alone (${letters}).`,
    },
  ];
}
