import { escapeHtml } from "../escape.js";
import { significant } from "../format.js";
import { round } from "./axis.js";
import { chartFrame, focusRow } from "./chart-frame.js";

export interface HistogramChart {
  readonly title: string;
  readonly xLabel: string;
  /** What is counted, in the plural. */
  readonly counted: string;
  readonly bars: readonly { readonly label: string; readonly tick: string; readonly count: number }[];
}

const width = 760;
const height = 220;
const bottom = 170;
const top = 14;
const left = 20;

/** Counts by bin, with their shares. Every bar takes the keyboard's focus and says its count. */
export function histogram({ title, xLabel, counted, bars }: HistogramChart): string {
  const most = Math.max(1, ...bars.map(({ count }) => count));
  const total = bars.reduce((sum, { count }) => sum + count, 0);
  const step = (width - 2 * left) / bars.length;
  const marks = bars.map(({ label, tick, count }, index) => {
    const tall = round(((bottom - top) * count) / most);
    const x = round(left + index * step);
    const middle = round(x + step / 2);
    const share = `${significant((100 * count) / Math.max(1, total), 1)} %`;
    return focusRow(
      "row",
      `${label}: ${count} ${counted}, ${share}`,
      `<rect class="focus" x="${x}" y="2" width="${round(step - 2)}" height="${height - 4}" rx="4"/>` +
        `<rect class="bar" x="${round(x + step * 0.12)}" y="${bottom - tall}" width="${round(step * 0.72)}" height="${tall}"/>` +
        `<text class="tick" x="${middle}" y="${bottom + 18}" text-anchor="middle">${escapeHtml(tick)}</text>` +
        (count === 0
          ? ""
          : `<text class="tick" x="${middle}" y="${bottom - tall - 4}" text-anchor="middle">${share}</text>`),
    );
  });
  return chartFrame({
    title,
    width,
    height,
    role: "list",
    content: `${marks.join("")}<text class="tick" aria-hidden="true" x="${width / 2}" y="${bottom + 40}" text-anchor="middle">${escapeHtml(xLabel)}</text>`,
  });
}
