import { escapeHtml } from "./escape.js";

/** How something was judged: the class of its colours and marks. */
export type Rating = "pass" | "fail" | "inconclusive";

const ratingSigns: Readonly<Record<Rating, string>> = {
  pass: "\u2713",
  fail: "\u2715",
  inconclusive: "?",
};

/** A rating as a word with its sign: never by colour alone. */
export function ratingBadge(rating: Rating): string {
  return `<span class="badge ${rating}"><span aria-hidden="true">${ratingSigns[rating]}</span> ${rating}</span>`;
}

export function section(id: string, title: string, content: string): string {
  return content === ""
    ? ""
    : `<section id="${escapeHtml(id)}" aria-labelledby="${escapeHtml(id)}-title"><h2 id="${escapeHtml(id)}-title">${escapeHtml(title)}</h2>${content}</section>`;
}

/** A cell: text is escaped here, `html` must have been. */
export type TableCell = string | { readonly html: string };

/** The first column names the row; `numeric` ones are aligned to the right. */
export function table(
  caption: string,
  head: readonly string[],
  rows: readonly (readonly TableCell[])[],
  numeric: readonly number[] = [],
): string {
  const header = head.map((cell, index) =>
    cell === "" ? "<td></td>" : `<th scope="col"${numberClass(numeric, index)}>${escapeHtml(cell)}</th>`,
  );
  const body = rows.map(
    ([first = "", ...rest]) =>
      `<tr><th scope="row">${cellHtml(first)}</th>${rest
        .map((cell, index) => `<td${numberClass(numeric, index + 1)}>${cellHtml(cell)}</td>`)
        .join("")}</tr>`,
  );
  return (
    `<div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(caption)}"><table><caption>${escapeHtml(caption)}</caption>` +
    `<thead><tr>${header.join("")}</tr></thead><tbody>${body.join("")}</tbody></table></div>`
  );
}

function numberClass(numeric: readonly number[], column: number): string {
  return numeric.includes(column) ? ' class="number"' : "";
}

function cellHtml(cell: TableCell): string {
  return typeof cell === "string" ? escapeHtml(cell) : cell.html;
}
