/** What a character of an answer is there for: quantisation breaks structure and values long before prose. */
type TextRole = "prose" | "json_key" | "json_value" | "tool_argument" | "structure";

/** Where JSON may stand: between marks that models put around calls and code, or as the whole text. */
const blocks = /<tool_call>([\s\S]*?)<\/tool_call>|```(?:json)?\n([\s\S]*?)```/g;
const lexeme = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * The role of every UTF-16 unit of an answer. JSON counts as such only where all of it can be parsed; within a call the values of
 * its arguments have a role of their own. The quotes of strings, brackets and marks are structure.
 */
export function textRoles(text: string): readonly TextRole[] {
  const roles: TextRole[] = Array.from({ length: text.length }, () => "prose");
  if (isJson(text)) {
    paintJson(text, 0, "json_value", roles);
    return roles;
  }
  for (const match of text.matchAll(blocks)) {
    const isCall = match[1] !== undefined;
    const body = match[1] ?? match[2] ?? "";
    if (!isJson(body)) continue;
    roles.fill("structure", match.index, match.index + match[0].length);
    paintJson(body, match.index + match[0].indexOf(body), isCall ? "tool_argument" : "json_value", roles);
  }
  return roles;
}

function isJson(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** In a call, only what is inside `arguments` is an argument; its name is a value. */
function paintJson(json: string, at: number, valueRole: TextRole, roles: TextRole[]): void {
  let depth = 0;
  let argumentsDepth = valueRole === "tool_argument" ? Infinity : 0;
  let lastKey = "";
  for (const match of json.matchAll(lexeme)) {
    const [found] = match;
    const start = at + match.index;
    const end = start + found.length;
    roles.fill("structure", start, end);
    if (found === "{" || found === "[") {
      depth += 1;
      if (argumentsDepth === Infinity && /^"(?:arguments|parameters)"$/.test(lastKey)) argumentsDepth = depth;
    } else if (found === "}" || found === "]") {
      if (depth === argumentsDepth) argumentsDepth = valueRole === "tool_argument" ? Infinity : 0;
      depth -= 1;
    } else if (!/^[:,]$/.test(found)) {
      const isString = found.startsWith('"');
      const isKey = isString && /^\s*:/.test(json.slice(match.index + found.length));
      if (isKey) lastKey = found;
      const role = isKey ? "json_key" : depth >= argumentsDepth ? valueRole : "json_value";
      roles.fill(role, isString ? start + 1 : start, isString ? end - 1 : end);
    }
  }
}
