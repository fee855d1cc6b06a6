import type { Figure } from "../../checks/check.js";
import { formatInterval, formatValue } from "../format.js";
import { escapeHtml, shorten } from "../html/escape.js";
import { linearAxis } from "./axis.js";
import { chartFrame } from "./chart-frame.js";

type Intervals = Extract<Figure, { kind: "intervals" }>;

const width = 760;
const left = 210;
const right = 118;
const rowHeight = 30;
const top = 8;
const mostRows = 60;

/**
 * Estimates with their intervals, one row each, and a tick where the margin lies. The mark's shape says the verdict as well as
 * its colour. Every row takes the keyboard's focus and says its figures.
 */
export function intervalChart({ title, unit, rows }: Intervals): string {
  const shown = rows.slice(0, mostRows);
  const bottom = top + shown.length * rowHeight;
  const values = shown.flatMap(({ estimate, interval, margin }) => [
    estimate,
    ...interval,
    ...(margin === undefined ? [] : [margin]),
  ]);
  const axis = linearAxis([...values, ...(unit === "ratio" ? [1] : [0])], {
    start: left,
    end: width - right,
  });
  const neutral = unit === "ratio" ? 1 : 0;
  const grid = axis.ticks.map((tick) => {
    const x = axis.place(tick);
    const kind = Math.abs(tick - neutral) < 1e-12 ? "grid neutral" : "grid";
    return `<line class="${kind}" x1="${x}" y1="${top}" x2="${x}" y2="${bottom}"/><text class="tick" x="${x}" y="${bottom + 17}" text-anchor="middle">${escapeHtml(formatValue(tick, unit))}</text>`;
  });
  const marks = shown.map((row, index) => {
    const y = top + index * rowHeight + rowHeight / 2;
    const marginText = row.margin === undefined ? "" : `, margin ${formatValue(row.margin, unit)}`;
    const label = `${row.label}: ${formatValue(row.estimate, unit)}, interval ${formatInterval(row.interval, unit)}${marginText}, ${row.verdict}`;
    const margin =
      row.margin === undefined
        ? ""
        : `<line class="margin" x1="${axis.place(row.margin)}" y1="${y - 12}" x2="${axis.place(row.margin)}" y2="${y + 12}"/>`;
    const [low, high] = row.interval;
    return (
      `<g class="row ${row.verdict}" tabindex="0" role="listitem" aria-label="${escapeHtml(label)}"><title>${escapeHtml(label)}</title>` +
      `<rect class="focus" x="1" y="${y - rowHeight / 2 + 1}" width="${width - 2}" height="${rowHeight - 2}" rx="4"/>` +
      `<text class="name" x="${left - 14}" y="${y + 4}" text-anchor="end">${escapeHtml(shorten(row.label, 30))}</text>${margin}` +
      `<line class="interval" x1="${axis.place(low)}" y1="${y}" x2="${axis.place(high)}" y2="${y}"/>` +
      `<path class="whisker" d="M${axis.place(low)} ${y - 5}v10M${axis.place(high)} ${y - 5}v10"/>` +
      verdictMark(row.verdict, axis.place(row.estimate), y) +
      `<text class="value" x="${width - right + 14}" y="${y + 4}">${escapeHtml(formatValue(row.estimate, unit))}</text></g>`
    );
  });
  const leftOut = rows.length - shown.length;
  return chartFrame({
    title,
    width,
    height: bottom + 26,
    role: "list",
    content: `<g aria-hidden="true">${grid.join("")}</g>${marks.join("")}`,
    caption:
      leftOut > 0
        ? `${leftOut} more rows are in the table.`
        : rows.some(({ margin }) => margin !== undefined)
          ? "Dashed ticks are the margins, fixed before the run."
          : undefined,
  });
}

/** Pass: a filled circle; fail: a filled diamond; inconclusive: an open circle. */
function verdictMark(verdict: string, x: number, y: number): string {
  return verdict === "fail"
    ? `<path class="point" d="M${x} ${y - 7}l7 7l-7 7l-7 -7z"/>`
    : `<circle class="point" cx="${x}" cy="${y}" r="5.5"/>`;
}
