import { createHash } from "node:crypto";
import { escapeHtml } from "./escape.js";
import { styles } from "./styles.js";

export interface Page {
  readonly title: string;
  /** Text of the link past the header, to the element `main`. */
  readonly skip: string;
  /** HTML, in its order. */
  readonly body: readonly string[];
  /** CSS after that of every page. */
  readonly styles?: string;
  /** A module's text. */
  readonly script?: string;
}

/**
 * One HTML file that loads nothing: its policy allows this page's own style and script by their hashes and nothing else.
 */
export function renderPage({ title, skip, body, styles: own = "", script }: Page): string {
  const css = styles + own;
  const scripts = script === undefined ? "" : ` script-src '${hashOf(script)}';`;
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '${hashOf(css)}';${scripts} img-src data:; base-uri 'none'; form-action 'none'">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    `<title>${escapeHtml(title)}</title><link rel="icon" href="data:,"><style>${css}</style></head><body>`,
    `<a class="skip" href="#main">${escapeHtml(skip)}</a>`,
    ...body,
    script === undefined ? "" : `<script>${script}</script>`,
    "</body></html>",
    "",
  ].join("\n");
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
