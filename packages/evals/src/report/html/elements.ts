import type { Verdict } from "../../checks/check.js";
import { escapeHtml } from "./escape.js";

const verdictSigns: Readonly<Record<Verdict, string>> = {
  pass: "\u2713",
  fail: "\u2715",
  inconclusive: "?",
};

/** A verdict as a word with its sign: never by colour alone. */
export function verdictBadge(verdict: Verdict): string {
  return `<span class="badge ${verdict}"><span aria-hidden="true">${verdictSigns[verdict]}</span> ${verdict}</span>`;
}

export function section(id: string, title: string, content: string): string {
  return content === ""
    ? ""
    : `<section id="${escapeHtml(id)}" aria-labelledby="${escapeHtml(id)}-title"><h2 id="${escapeHtml(id)}-title">${escapeHtml(title)}</h2>${content}</section>`;
}

/** A cell: text is escaped here, `html` must have been. */
export type Cell = string | { readonly html: string };

/** The first column names the row; figures stand right. */
export function table(
  caption: string,
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  numeric: readonly number[] = [],
): string {
  const header = head.map(
    (cell, index) =>
      `<th scope="col"${numeric.includes(index) ? ' class="number"' : ""}>${escapeHtml(cell)}</th>`,
  );
  const body = rows.map(
    ([first = "", ...rest]) =>
      `<tr><th scope="row">${cellHtml(first)}</th>${rest
        .map(
          (cell, index) =>
            `<td${numeric.includes(index + 1) ? ' class="number"' : ""}>${cellHtml(cell)}</td>`,
        )
        .join("")}</tr>`,
  );
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(caption)}"><table><caption>${escapeHtml(caption)}</caption>` +
    `<thead><tr>${header.join("")}</tr></thead><tbody>${body.join("")}</tbody></table></div>`
  );
}

function cellHtml(cell: Cell): string {
  return typeof cell === "string" ? escapeHtml(cell) : cell.html;
}
