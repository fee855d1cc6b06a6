/**
 * Characters that are not seen themselves, or reorder the text around them (U+202E makes a line read as its opposite): format
 * characters, variation selectors, fillers, tags, line and paragraph separators. Joiners inside words of scripts that need them and inside
 * emoji, and the selectors of emoji, stay.
 */
const invisible =
  /(?!(?<=(?!\p{Script=Latin})[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}])[\u200c\u200d](?=[\p{L}\p{M}\p{Extended_Pictographic}]))(?!(?<=\p{Emoji})[\ufe0e\ufe0f])[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Text in which control and invisible characters show: for any format. Tabs and line ends stay. */
export function visibleText(text: string): string {
  return text
    .replaceAll(/\p{Cs}|[\ufffe\uffff]/gu, "\ufffd")
    .replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\u2426")
    .replaceAll(invisible, (character) => `\u27e8U+${hex(character)}\u27e9`);
}

/** Text for HTML, SVG and XML, content and attributes alike: markup is escaped, and {@link visibleText}. */
export function escapeHtml(text: string): string {
  return visibleText(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** At most `most` characters, for labels: the middle is left out, since names that are alike often differ at their ends. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) / 2);
  return `${text.slice(0, most - 1 - end)}\u2026${text.slice(text.length - end)}`;
}

/** At most `most` characters, and how many more there were. */
export function clip(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most)} \u2026 (${text.length - most} more characters)`;
}

function hex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}
