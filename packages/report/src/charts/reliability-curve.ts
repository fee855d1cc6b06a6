import { formatInterval, formatValue, significant } from "../format.js";
import { escapeHtml } from "../escape.js";
import { linearAxis } from "./axis.js";
import { chartFrame, focusRow } from "./chart-frame.js";

const size = 320;
const left = 52;
const right = 16;
const top = 14;
const bottom = 268;

export interface ReliabilityCurve {
  readonly title: string;
  readonly xLabel: string;
  /** Ascending in `predicted`, both 0 to 1. */
  readonly bins: readonly {
    readonly predicted: number;
    readonly observed: number;
    readonly interval: readonly [number, number] | undefined;
    readonly count: number;
  }[];
}

/** Predicted probabilities against observed shares; those of a calibrated judge lie on the diagonal. */
export function reliabilityCurve({ title, xLabel, bins }: ReliabilityCurve): string {
  const x = linearAxis([0, 1], { start: left, end: size - right });
  const y = linearAxis([0, 1], { start: bottom, end: top });
  const most = Math.max(1, ...bins.map(({ count }) => count));
  const grid = x.ticks.map(
    (tick) =>
      `<line class="grid" x1="${x.place(tick)}" y1="${top}" x2="${x.place(tick)}" y2="${bottom}"/><line class="grid" x1="${left}" y1="${y.place(tick)}" x2="${size - right}" y2="${y.place(tick)}"/>` +
      `<text class="tick" x="${x.place(tick)}" y="${bottom + 17}" text-anchor="middle">${significant(tick, 1)}</text><text class="tick" x="${left - 7}" y="${y.place(tick) + 4}" text-anchor="end">${significant(tick, 1)}</text>`,
  );
  const path = bins
    .map((bin, index) => `${index === 0 ? "M" : "L"}${x.place(bin.predicted)} ${y.place(bin.observed)}`)
    .join("");
  const marks = bins.map((bin) => {
    const label = `said ${formatValue(bin.predicted, "share")}, people ${formatValue(bin.observed, "share")}${bin.interval === undefined ? "" : ` (${formatInterval(bin.interval, "share")})`}, ${bin.count} cases`;
    const whisker =
      bin.interval === undefined
        ? ""
        : `<line class="interval" x1="${x.place(bin.predicted)}" y1="${y.place(bin.interval[0])}" x2="${x.place(bin.predicted)}" y2="${y.place(bin.interval[1])}"/>`;
    return focusRow(
      "row",
      label,
      `${whisker}<circle class="point" cx="${x.place(bin.predicted)}" cy="${y.place(bin.observed)}" r="${significant(3 + 4 * Math.sqrt(bin.count / most), 1)}"/>`,
    );
  });
  return chartFrame({
    title,
    width: size,
    role: "list",
    draw: () => ({
      height: bottom + 44,
      content: `<g aria-hidden="true">${grid.join("")}<path class="diagonal" d="M${left} ${bottom}L${size - right} ${top}"/><path class="line c0" d="${path}"/><text class="tick" x="${(left + size - right) / 2}" y="${bottom + 36}" text-anchor="middle">${escapeHtml(xLabel)}</text></g>${marks.join("")}`,
    }),
  });
}
