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

/** What a command of a document begins with. */
const beginnings =
  /^(?:[A-Z_]+=\S+ )*(?:npx )?(octavo|curl|npm|npx|node|kill|for|printf|git|prometheus|promtool|ruby|docker)\b/;

/** Code blocks of a shell: those that say so, and those without a language whose first line is a command. */
export function blocksOf(text) {
  return [...text.matchAll(/^```(\w*)[^\n]*\n([\s\S]*?)^```$/gm)].flatMap(([, language, code]) =>
    ["sh", "bash", "shell"].includes(language) || (language === "" && beginnings.test(code))
      ? [{ code }]
      : [],
  );
}

/** The commands of a block, each with all of its lines: quotes and backslashes go on over the end of one. */
export function statementsOf(code) {
  const statements = [];
  let statement = "";
  let quote;
  for (let at = 0; at < code.length; at += 1) {
    const letter = code[at];
    if (letter === "\\" && quote !== "'") {
      statement += letter + (code[at + 1] ?? "");
      at += 1;
    } else if (letter === "#" && quote === undefined && /(^|\s)$/.test(statement)) {
      while (at + 1 < code.length && code[at + 1] !== "\n") at += 1;
    } else if (letter === "\n" && quote === undefined) {
      statements.push(statement);
      statement = "";
    } else {
      if (letter === quote) quote = undefined;
      else if (quote === undefined && (letter === "'" || letter === '"')) quote = letter;
      statement += letter;
    }
  }
  return [...statements, statement].map((each) => each.trim()).filter((each) => each !== "");
}

/** A command on one line, to be told by its beginning. */
export function oneLine(statement) {
  return statement.replaceAll("\\\n", " ").replaceAll(/\s+/g, " ");
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
