/** Languages by the other names that code blocks give them. */
const aliases = {
  javascript: "js mjs jsx node",
  typescript: "ts tsx",
  python: "py python3",
  ruby: "rb",
  rust: "rs",
  bash: "sh shell zsh console",
  yaml: "yml",
  cpp: "c++ cxx",
  csharp: "c# cs",
  go: "golang",
  kotlin: "kt",
  markdown: "md",
  sql: "postgres postgresql mysql",
} as const;

const languageOf: ReadonlyMap<string, string> = new Map(
  Object.entries(aliases).flatMap(([language, names]) =>
    names.split(" ").map((name) => [name, language] as const),
  ),
);

export function sameLanguage(a: string, b: string): boolean {
  const name = (language: string): string => languageOf.get(language.toLowerCase()) ?? language.toLowerCase();
  return name(a) === name(b);
}

/** Lines that prose does not have: a statement's end, an assignment, a definition, an import, a query. */
const codeLine =
  /^\s*(?:(?:import|from|#include|using|package|use)\s[\w<"'@{*./:, }-]{1,200};?|(?:async\s+)?(?:def|function|fn|func|class|struct|enum|interface|public|private|static|const|let|var|return|export)\s.{0,200}[({;:=].{0,200}|SELECT\s.{1,200}\sFROM\s.{1,200}|[\w.$[\]]{1,80}\s*(?:=|\+=|:=)\s.{1,200};|(?:if|for|while|switch)\s*\(.{0,200}\)\s*\{|.{0,200}\)\s*;|<\/?[a-z][\w-]{0,30}(?:\s[^<>]{0,200})?>.{0,200})\s*$/;

/** Two such lines make code of a text without code blocks. */
export function looksLikeCode(text: string): boolean {
  let lines = 0;
  for (const line of text.split("\n")) {
    if (line.length <= 500 && codeLine.test(line)) lines++;
    if (lines === 2) return true;
  }
  return false;
}
