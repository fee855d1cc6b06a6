import type { Chart } from "./chart.js";
import { significant } from "../format.js";
import { escapeHtml, shorten } from "../escape.js";
import { linearAxis, rangeOf, round } from "./axis.js";
import { chartFrame, type Drawing } from "./chart-frame.js";

type Series = Extract<Chart, { kind: "series" }>;
type Point = readonly [number, number];

const height = 280;
const left = 56;
const right = 30;
const top = 30;
const bottom = 232;
const mostLines = 8;
const pointsPerLine = 600;
/** Pixels that a figure below the x axis takes, and a letter of a label. */
const tickWidth = 94;
const letterWidth = 6;

/** Lines over a common x, with shaded spans such as a burst. Lines differ by colour and by dashes. */
export function seriesChart({ title, xLabel, yLabel, lines, spans = [], threshold }: Series): string {
  const shown = lines
    .slice(0, mostLines)
    .map(({ label, points }) => ({ label, points: thinned(points.filter(isFinitePoint)) }));
  const keys = shown.map(
    ({ label }, index) =>
      `<li><svg viewBox="0 0 26 8" width="26" height="8" aria-hidden="true"><path class="line c${index}" d="M0 4H26"/></svg>${escapeHtml(shorten(label, 60))}</li>`,
  );
  return chartFrame({
    title,
    draw,
    role: "img",
    label: [
      ...shown.map(({ label, points }) => `${label}, ${rangeText(points)}`),
      ...spans.map(({ label, from, to }) => `${label} from ${significant(from, 1)} to ${significant(to, 1)}`),
      ...(threshold === undefined ? [] : [`threshold ${significant(threshold, 2)}`]),
    ].join("; "),
    caption: lines.length > mostLines ? `${lines.length - mostLines} more lines are not drawn.` : undefined,
    below: `<ul class="keys">${keys.join("")}</ul>`,
  });

  function draw(width: number): Drawing {
    const all = shown.flatMap(({ points }) => points);
    const xAxis = linearAxis([...all.map(([x]) => x), ...spans.flatMap(({ from, to }) => [from, to])], {
      start: left,
      end: width - right,
      ticks: Math.max(4, Math.round((width - right - left) / tickWidth)),
    });
    const yAxis = linearAxis([0, ...all.map(([, y]) => y), ...(threshold === undefined ? [] : [threshold])], {
      start: bottom,
      end: top,
    });
    const grid = [
      ...yAxis.ticks.map(
        (tick) =>
          `<line class="grid" x1="${left}" y1="${yAxis.place(tick)}" x2="${width - right}" y2="${yAxis.place(tick)}"/><text class="tick" x="${left - 8}" y="${yAxis.place(tick) + 4}" text-anchor="end">${escapeHtml(significant(tick, 2))}</text>`,
      ),
      ...xAxis.ticks.map(
        (tick) =>
          `<text class="tick" x="${xAxis.place(tick)}" y="${bottom + 17}" text-anchor="middle">${escapeHtml(significant(tick, 1))}</text>`,
      ),
    ];
    const shades = spans.map(({ label, from, to }) => {
      const x = xAxis.place(from);
      // towards the side that has more room
      const [anchor, room] = x < width / 2 ? ["start", width - x] : ["end", x];
      return `<rect class="span" x="${x}" y="${top}" width="${round(Math.max(1, xAxis.place(to) - x))}" height="${bottom - top}"/><text class="tick" x="${x + (anchor === "start" ? 4 : -4)}" y="${top - 6}" text-anchor="${anchor}">${escapeHtml(shorten(label, Math.min(40, Math.floor(room / letterWidth))))}</text>`;
    });
    const paths = shown.map(({ points }, index) => {
      const [first] = points;
      if (first !== undefined && points.length === 1)
        return `<circle class="dot c${index}" cx="${xAxis.place(first[0])}" cy="${yAxis.place(first[1])}" r="4"/>`;
      const path = points
        .map(([x, y], at) => `${at === 0 ? "M" : "L"}${xAxis.place(x)} ${yAxis.place(y)}`)
        .join("");
      return `<path class="line c${index}" d="${path}"/>`;
    });
    const limit =
      threshold === undefined
        ? ""
        : `<line class="threshold" x1="${left}" y1="${yAxis.place(threshold)}" x2="${width - right}" y2="${yAxis.place(threshold)}"/>`;
    return {
      height,
      content: `${shades.join("")}${grid.join("")}${limit}${paths.join("")}<text class="tick" x="${left}" y="12">${escapeHtml(yLabel)}</text><text class="tick" x="${width - right}" y="${bottom + 38}" text-anchor="end">${escapeHtml(xLabel)}</text>`,
    };
  }
}

function isFinitePoint([x, y]: Point): boolean {
  return Number.isFinite(x) && Number.isFinite(y);
}

/** Keeps the lowest and the highest point in each slice of x, in order, so that peaks stay, however many points there are. */
function thinned(points: readonly Point[]): readonly Point[] {
  if (points.length <= pointsPerLine) return points;
  const slice = Math.ceil(points.length / (pointsPerLine / 2));
  const kept: Point[] = [];
  for (let at = 0; at < points.length; at += slice) {
    const part = points.slice(at, at + slice);
    let low = 0;
    let high = 0;
    part.forEach(([, y], index) => {
      if (y < (part[low]?.[1] ?? 0)) low = index;
      if (y > (part[high]?.[1] ?? 0)) high = index;
    });
    for (const index of low < high ? [low, high] : low > high ? [high, low] : [low]) {
      const point = part[index];
      if (point !== undefined) kept.push(point);
    }
  }
  return kept;
}

function rangeText(points: readonly Point[]): string {
  if (points.length === 0) return "no points";
  const [low, high] = rangeOf(points.map(([, y]) => y));
  return `${significant(low, 2)} to ${significant(high, 2)}`;
}
