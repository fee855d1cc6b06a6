/** Names of languages as code blocks write them. */
const aliases: Readonly<Record<string, string>> = {
  js: "javascript",
  mjs: "javascript",
  jsx: "javascript",
  node: "javascript",
  ts: "typescript",
  tsx: "typescript",
  py: "python",
  python3: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  zsh: "bash",
  console: "bash",
  yml: "yaml",
  "c++": "cpp",
  cxx: "cpp",
  "c#": "csharp",
  cs: "csharp",
  golang: "go",
  kt: "kotlin",
  md: "markdown",
  postgres: "sql",
  postgresql: "sql",
  mysql: "sql",
};

export function sameLanguage(a: string, b: string): boolean {
  const name = (language: string): string => {
    const lower = language.toLowerCase();
    return Object.hasOwn(aliases, lower) ? aliases[lower]! : lower;
  };
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
