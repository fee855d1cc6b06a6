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

const height = 224;
const bottom = 170;
const top = 14;
const left = 20;

/** Pixels that a bin's words take; narrower bins have shorter ones, in two lines. */
const wordWidth = 46;

/** Counts by bin, with their shares. Every bar takes the keyboard's focus and says its count. */
export function histogram({ title, xLabel, counted, bars }: HistogramChart): string {
  const most = Math.max(1, ...bars.map(({ count }) => count));
  const total = bars.reduce((sum, { count }) => sum + count, 0);
  return chartFrame({ title, role: "list", draw });

  function draw(width: number) {
    const step = (width - 2 * left) / bars.length;
    const isTight = step < wordWidth;
    const marks = bars.map(({ label, tick, count }, index) => {
      const tall = round(((bottom - top) * count) / most);
      const x = round(left + index * step);
      const middle = round(x + step / 2);
      const percent = (100 * count) / Math.max(1, total);
      const share = `${significant(percent, 1)} %`;
      const short = isTight ? `${percent < 0.5 ? "<1" : significant(percent, 0)} %` : share;
      return focusRow(
        "row",
        `${label}: ${count} ${counted}, ${share}`,
        `<rect class="focus" x="${x}" y="2" width="${round(step - 2)}" height="${height - 4}" rx="4"/>` +
          `<rect class="bar" x="${round(x + step * 0.12)}" y="${bottom - tall}" width="${round(step * 0.72)}" height="${tall}"/>` +
          `<text class="tick" x="${middle}" y="${bottom + (isTight && index % 2 === 1 ? 32 : 18)}" text-anchor="middle">${escapeHtml(tick)}</text>` +
          (count === 0
            ? ""
            : `<text class="tick" x="${middle}" y="${bottom - tall - 4}" text-anchor="middle">${short}</text>`),
      );
    });
    return {
      height,
      content: `${marks.join("")}<text class="tick" aria-hidden="true" x="${width / 2}" y="${height - 4}" text-anchor="middle">${escapeHtml(xLabel)}</text>`,
    };
  }
}
