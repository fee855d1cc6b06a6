import type { Rating } from "../elements.js";
import { escapeHtml, shorten } from "../escape.js";
import { formatValue } from "../format.js";
import { linearAxis, logAxis } from "./axis.js";
import { chartFrame, chartWidths, type Drawing, focusRow } from "./chart-frame.js";

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

/** Where a row's parts stand: beside each other, or on a narrow screen the words above their interval. */
interface Layout {
  readonly rowHeight: number;
  /** The plot's own, in pixels. */
  readonly start: number;
  readonly end: number;
  /** Below a row's top: the interval, and the words. */
  readonly middle: number;
  readonly baseline: number;
  readonly name: { readonly x: number; readonly anchor: "start" | "end" };
  readonly value: { readonly x: number; readonly anchor: "start" | "end" };
}

const wide: Layout = {
  rowHeight: 30,
  start: 236,
  end: 642,
  middle: 15,
  baseline: 19,
  name: { x: 222, anchor: "end" },
  value: { x: 656, anchor: "start" },
};
const narrow: Layout = {
  rowHeight: 46,
  start: 24,
  end: 316,
  middle: 31,
  baseline: 16,
  name: { x: 6, anchor: "start" },
  value: { x: 334, anchor: "end" },
};
const top = 8;
const mostRows = 60;
/** Pixels that a tick's figure takes. */
const tickWidth = 52;

/**
 * Estimates with their intervals, one row each, and a tick at the margin. The shape of a mark says the verdict as well as its
 * colour. Every row takes the keyboard's focus and says its figures.
 */
export function intervalChart(chart: IntervalChart): string {
  const { title, rows } = chart;
  const shown = rows.slice(0, mostRows);
  const leftOut = rows.length - shown.length;
  return chartFrame({
    title,
    draw: (width) => draw(chart, shown, width, width === chartWidths.narrow ? narrow : wide),
    role: "list",
    caption:
      leftOut > 0
        ? `${leftOut} more rows are in the table.`
        : rows.some(({ margin }) => margin !== undefined)
          ? "Dashed ticks are the margins, fixed before the run."
          : undefined,
  });
}

function draw(
  { unit, scale, show: format }: IntervalChart,
  shown: readonly IntervalRow[],
  width: number,
  { rowHeight, start, end, middle, baseline, name, value }: Layout,
): Drawing {
  const show = format ?? ((figure: number) => formatValue(figure, unit));
  const bottom = top + shown.length * rowHeight;
  const neutral = unit === "ratio" ? 1 : 0;
  const values = shown.flatMap(({ estimate, interval = [], margin = neutral }) => [
    estimate,
    ...interval,
    margin,
  ]);
  const pixels = { start, end };
  const axis = scale === "log" ? logAxis(values, pixels) : linearAxis([...values, neutral], pixels);
  const every = Math.ceil((axis.ticks.length * tickWidth) / (end - start));
  const grid = axis.ticks.map((tick, index) => {
    const x = axis.place(tick);
    const kind = Math.abs(tick - neutral) < 1e-12 ? "grid neutral" : "grid";
    const figure =
      index % every === 0
        ? `<text class="tick" x="${x}" y="${bottom + 17}" text-anchor="middle">${escapeHtml(show(tick))}</text>`
        : "";
    return `<line class="${kind}" x1="${x}" y1="${top}" x2="${x}" y2="${bottom}"/>${figure}`;
  });
  const marks = shown.map(({ label, estimate, interval, margin, verdict }, index) => {
    const rowTop = top + index * rowHeight;
    const y = rowTop + middle;
    const x = axis.place(estimate);
    const said = [
      `${label}: ${show(estimate)}`,
      interval === undefined ? "no interval" : `interval ${show(interval[0])} to ${show(interval[1])}`,
      ...(margin === undefined ? [] : [`margin ${show(margin)}`]),
      ...(verdict === undefined ? [] : [verdict]),
    ].join(", ");
    const [low, high] = (interval ?? []).map((bound) => axis.place(bound));
    return focusRow(
      `row ${verdict ?? "unjudged"}`,
      said,
      `<rect class="focus" x="1" y="${rowTop + 1}" width="${width - 2}" height="${rowHeight - 2}" rx="4"/>` +
        `<text class="name" x="${name.x}" y="${rowTop + baseline}" text-anchor="${name.anchor}">${escapeHtml(shorten(label, 30))}</text>` +
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
        `<text class="value" x="${value.x}" y="${rowTop + baseline}" text-anchor="${value.anchor}">${escapeHtml(show(estimate))}</text>`,
    );
  });
  return {
    height: bottom + 26,
    content: `<g aria-hidden="true">${grid.join("")}</g>${marks.join("")}`,
  };
}
