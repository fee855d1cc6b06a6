/** Characters that reorder the text around them: a model could make a line read as its opposite. */
const reordering = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text for HTML and SVG, content and attributes alike; what a page must not obey becomes visible. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll(/\p{Cs}/gu, "\ufffd")
    .replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\u2426")
    .replaceAll(reordering, (character) => `\u27e8U+${hex(character)}\u27e9`)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** At most `most` characters, for labels. */
export function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}\u2026`;
}

/** At most `most` characters, and how many more there were. */
export function clip(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)} \u2026 (${text.length - most} more characters)`;
}

function hex(character: string): string {
  return character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
}
