import { OctavoError } from "@octavo/protocol";

const longestPattern = 500;

/**
 * Whether a change of these files concerns a gate. Patterns are as in a workflow's `paths`: `*` within a folder, `**` across
 * folders, `?`, `{a,b}`; a pattern that begins with `!` takes back what those before it took, and the last that fits decides.
 * @throws OctavoError `invalid_option` for a pattern that cannot be read
 */
export function concerns(patterns: readonly string[], changedFiles: readonly string[]): boolean {
  const rules = patterns.map((pattern) => {
    const isTaken = !pattern.startsWith("!");
    return { isTaken, expression: globExpression(isTaken ? pattern : pattern.slice(1)) };
  });
  return changedFiles.some((file) => {
    const path = file.replaceAll("\\", "/").replace(/^\.\//, "");
    return rules.findLast(({ expression }) => expression.test(path))?.isTaken ?? false;
  });
}

function globExpression(pattern: string): RegExp {
  if (pattern === "" || pattern.length > longestPattern)
    throw new OctavoError("invalid_option", `a path pattern has 1 to ${longestPattern} characters`);
  let source = "";
  let depth = 0;
  const text = pattern.replace(/^\.?\//, "").replaceAll(/(?:\*\*\/)+/g, "**/");
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? "";
    if (text.startsWith("**/", at)) {
      source += "(?:[^/]+/)*";
      at += 2;
    } else if (text.startsWith("**", at)) {
      source += ".*";
      at += 1;
    } else if (character === "*") source += "[^/]*";
    else if (character === "?") source += "[^/]";
    else if (character === "{") {
      source += "(?:";
      depth += 1;
    } else if (character === "}" && depth > 0) {
      source += ")";
      depth -= 1;
    } else if (character === "," && depth > 0) source += "|";
    else source += character.replaceAll(/[.+^$()|[\]\\{}]/g, String.raw`\$&`);
  }
  if (depth > 0)
    throw new OctavoError("invalid_option", `the path pattern ${JSON.stringify(pattern)} lacks a }`);
  return new RegExp(`^${source}$`, "u");
}
