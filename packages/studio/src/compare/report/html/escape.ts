/** Text for HTML and SVG, content and attributes alike; control characters, which neither may hold, become visible. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll(/(?![\t\n\r])\p{Cc}/gu, "\u2426")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
