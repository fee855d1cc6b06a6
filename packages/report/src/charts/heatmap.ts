import type { Chart, HeatCell } from "./chart.js";
import { significant } from "../format.js";
import { rangeOf } from "./axis.js";
import { escapeHtml } from "../escape.js";

type Heatmap = Extract<Chart, { kind: "heatmap" }>;

/** Shades from the lowest to the highest cell: classes `h0` to `h8`, whose colours the themes set. */
const heatShades = 9;
const leastSpan = 0.05;
const mostColumns = 24;
const mostRows = 80;

/**
 * Cells coloured by their value, as a table: every cell says its value, how many it is of and its interval. Differences too
 * small to mean anything do not use the whole ramp of colours.
 */
export function heatmap({ title, xLabel, yLabel, x, y, cells }: Heatmap): string {
  const columns = x.slice(0, mostColumns);
  const rows = y.slice(0, mostRows);
  const values = cells.flatMap((row) =>
    row.flatMap((cell) => (cell !== null && Number.isFinite(cell.value) ? [cell.value] : [])),
  );
  let [low, high] = rangeOf(values);
  const isShare = low >= 0 && high <= 1;
  const least = isShare ? leastSpan : Math.abs(high) * leastSpan;
  if (high - low < least) low = high - least;
  const show = (value: number): string =>
    isShare ? significant(100 * value, value === 1 || value === 0 ? 0 : 1) : significant(value, 2);
  const shade = (value: number): number =>
    Math.min(heatShades - 1, Math.max(0, Math.floor(((value - low) / (high - low || 1)) * heatShades)));
  const body = rows.map((name, rowIndex) => {
    const line = columns.map((_, columnIndex) =>
      cellHtml(cells[rowIndex]?.[columnIndex] ?? null, show, shade),
    );
    return `<tr><th scope="row">${escapeHtml(name)}</th>${line.join("")}</tr>`;
  });
  const leftOut = (x.length - columns.length) * y.length + (y.length - rows.length) * columns.length;
  const legend =
    values.length === 0
      ? ""
      : `<div class="legend${isShare ? "" : " amount"}" aria-hidden="true"><span>${escapeHtml(show(low))}</span>${Array.from({ length: heatShades }, (_, index) => `<i class="h${index}"></i>`).join("")}<span>${escapeHtml(show(high))}${isShare ? " %" : ""}</span></div>`;
  return (
    `<figure><figcaption>${escapeHtml(title)}</figcaption><div class="scroll" tabindex="0" role="region" aria-label="${escapeHtml(title)}">` +
    `<table class="${isShare ? "heat" : "heat amount"}"><thead><tr><td class="axes"><span>${escapeHtml(yLabel)} \u2193</span><span>${escapeHtml(xLabel)} \u2192</span></td>` +
    `${columns.map((name) => `<th scope="col">${escapeHtml(name)}</th>`).join("")}</tr></thead><tbody>${body.join("")}</tbody></table></div>` +
    `${legend}${leftOut > 0 ? `<p class="note">${leftOut} more cells are in the JSON output.</p>` : ""}</figure>`
  );
}

function cellHtml(
  cell: HeatCell | null,
  show: (value: number) => string,
  shade: (value: number) => number,
): string {
  if (cell === null || !Number.isFinite(cell.value))
    return '<td class="empty" aria-label="no observation">\u00b7</td>';
  const [low, high] = cell.interval ?? [];
  const range = low === undefined || high === undefined ? "" : `${show(low)}\u2013${show(high)}, `;
  return `<td class="h${shade(cell.value)}"><b>${escapeHtml(show(cell.value))}</b><small>${escapeHtml(`${range}n ${significant(cell.count, 0)}`)}</small></td>`;
}
