const operators = ["|", "&&", ";", ">", ">>", "<", "&", "2>&1"];

/** The arguments of each `octavo` that the code blocks of a document hold, up to a pipe, a redirection or the next command. */
export function commandsOf(text) {
  return blocksOf(text).flatMap(({ code }) =>
    linesOf(code).flatMap((line) => {
      const words = tokensOf(line);
      return words.flatMap(({ text: word }, index) => {
        const before = words[index - 1];
        const isCommand =
          word === "octavo" &&
          (before === undefined ||
            before.isOperator ||
            ["npx", "time"].includes(before.text) ||
            /^[A-Z_]+=/.test(before.text));
        if (!isCommand) return [];
        const rest = words.slice(index + 1);
        const end = rest.findIndex(({ isOperator }) => isOperator);
        return [(end < 0 ? rest : rest.slice(0, end)).map((each) => each.text)];
      });
    }),
  );
}

/** Code blocks of a shell, each with the word of the comment before it: `<!-- run -->`. */
export function blocksOf(text) {
  return [...text.matchAll(/(?:<!-- (\w+) -->\n+)?^```(sh|bash|shell)?\n([\s\S]*?)^```$/gm)].map(
    ([, mark, , code]) => ({ mark, code }),
  );
}

/** Lines of commands; a backslash at the end continues one. */
export function linesOf(code) {
  return code
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
}

/** The words of a line, without a comment at its end. */
export function shellWords(line) {
  return tokensOf(line).map(({ text }) => text);
}

function tokensOf(line) {
  const tokens = [];
  for (const [, word] of line.matchAll(/((?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+)/g)) {
    if (word.startsWith("#")) break;
    const text = word.replaceAll(
      /"((?:\\.|[^"\\])*)"|'([^']*)'|\\(.)/g,
      (_, double, single, escaped) => double?.replaceAll(/\\(["\\$`])/g, "$1") ?? single ?? escaped,
    );
    tokens.push({ text, isOperator: operators.includes(word) });
  }
  return tokens;
}
