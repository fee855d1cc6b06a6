import type { Rating } from "../elements.js";
import { escapeHtml, shorten } from "../escape.js";
import { formatValue } from "../format.js";
import { linearAxis, logAxis } from "./axis.js";
import { chartFrame, focusRow } from "./chart-frame.js";

export interface IntervalRow {
  readonly label: string;
  readonly estimate: number;
  /** Undefined where there are too few observations for one. */
  readonly interval: readonly [number, number] | undefined;
  /** What the estimate may be and still pass; fixed before the run. */
  readonly margin?: number | undefined;
  readonly verdict?: Rating;
}

export interface IntervalChart {
  readonly title: string;
  readonly unit: string;
  readonly rows: readonly IntervalRow[];
  /** `log` where values span powers of ten. Default: linear. */
  readonly scale?: "linear" | "log";
  /** Default: `formatValue` with the unit. */
  readonly show?: (value: number) => string;
}

const width = 760;
const left = 236;
const right = 118;
const rowHeight = 30;
const top = 8;
const mostRows = 60;

/**
 * Estimates with their intervals, one row each, and a tick at the margin. The shape of a mark says the verdict as well as its
 * colour. Every row takes the keyboard's focus and says its figures.
 */
export function intervalChart({ title, unit, rows, scale, show: format }: IntervalChart): string {
  const show = format ?? ((value: number) => formatValue(value, unit));
  const shown = rows.slice(0, mostRows);
  const bottom = top + shown.length * rowHeight;
  const neutral = unit === "ratio" ? 1 : 0;
  const values = shown.flatMap(({ estimate, interval = [], margin = neutral }) => [
    estimate,
    ...interval,
    margin,
  ]);
  const pixels = { start: left, end: width - right };
  const axis = scale === "log" ? logAxis(values, pixels) : linearAxis([...values, neutral], pixels);
  const grid = axis.ticks.map((tick) => {
    const x = axis.place(tick);
    const kind = Math.abs(tick - neutral) < 1e-12 ? "grid neutral" : "grid";
    return `<line class="${kind}" x1="${x}" y1="${top}" x2="${x}" y2="${bottom}"/><text class="tick" x="${x}" y="${bottom + 17}" text-anchor="middle">${escapeHtml(show(tick))}</text>`;
  });
  const marks = shown.map(({ label, estimate, interval, margin, verdict }, index) => {
    const y = top + index * rowHeight + rowHeight / 2;
    const x = axis.place(estimate);
    const said = [
      `${label}: ${show(estimate)}`,
      interval === undefined ? "no interval" : `interval ${show(interval[0])} to ${show(interval[1])}`,
      ...(margin === undefined ? [] : [`margin ${show(margin)}`]),
      ...(verdict === undefined ? [] : [verdict]),
    ].join(", ");
    const [low, high] = (interval ?? []).map((end) => axis.place(end));
    return focusRow(
      `row ${verdict ?? "unjudged"}`,
      said,
      `<rect class="focus" x="1" y="${y - rowHeight / 2 + 1}" width="${width - 2}" height="${rowHeight - 2}" rx="4"/>` +
        `<text class="name" x="${left - 14}" y="${y + 4}" text-anchor="end">${escapeHtml(shorten(label, 30))}</text>` +
        (margin === undefined
          ? ""
          : `<line class="margin" x1="${axis.place(margin)}" y1="${y - 12}" x2="${axis.place(margin)}" y2="${y + 12}"/>`) +
        (low === undefined || high === undefined
          ? ""
          : `<line class="interval" x1="${low}" y1="${y}" x2="${high}" y2="${y}"/><path class="whisker" d="M${low} ${y - 5}v10M${high} ${y - 5}v10"/>`) +
        // pass is a filled circle, fail a filled diamond, inconclusive an open circle
        (verdict === "fail"
          ? `<path class="point" d="M${x} ${y - 7}l7 7l-7 7l-7 -7z"/>`
          : `<circle class="point" cx="${x}" cy="${y}" r="5.5"/>`) +
        `<text class="value" x="${width - right + 14}" y="${y + 4}">${escapeHtml(show(estimate))}</text>`,
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
