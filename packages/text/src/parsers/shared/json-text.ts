export const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** A number, true, false or null. */
export function isJsonScalar(text: string): boolean {
  return text === "true" || text === "false" || text === "null" || jsonNumber.test(text);
}

/** One UTF-16 unit escaped for a JSON string. Surrogates stay as they are, so that pairs join again. */
export function escapeUnit(unit: string): string {
  const code = unit.charCodeAt(0);
  return code >= 0xd800 && code <= 0xdfff ? unit : JSON.stringify(unit).slice(1, -1);
}

export function escapeText(text: string): string {
  let escaped = "";
  for (let i = 0; i < text.length; i++) escaped += escapeUnit(text.charAt(i));
  return escaped;
}
