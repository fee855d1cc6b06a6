import type { Chart } from "./chart.js";
import { formatValue, significant } from "../format.js";
import { escapeHtml, shorten } from "../escape.js";
import { linearAxis, round } from "./axis.js";
import { chartFrame, type Drawing, focusRow } from "./chart-frame.js";

type Steps = Extract<Chart, { kind: "steps" }>;

const left = 56;
const right = 30;
/** Pixels that a figure of the time line takes. */
const tickWidth = 94;
const top = 26;
const laneTop = 92;
const bottom = 168;
const mostSteps = 160;

/**
 * Engine steps on a time line, as wide as they took, and below it their tokens, prompt tokens above decode tokens; the blamed
 * step is highlighted. Every step takes the keyboard's focus and says its figures.
 */
export function stepsChart({ title, steps }: Steps): string {
  const shown = around(steps);
  const blamed = shown.find(({ isBlamed }) => isBlamed);
  const leftOut = steps.length - shown.length;
  const said = [
    ...(blamed === undefined
      ? []
      : [
          `Highlighted: ${shorten(blamed.label, 200)}, ${formatValue(blamed.durationMs, "ms")} with ${significant(blamed.prefillTokens, 0)} prompt tokens.`,
        ]),
    ...(leftOut > 0 ? [`${leftOut} steps further away are not drawn.`] : []),
  ];
  return chartFrame({
    title,
    draw,
    role: "list",
    caption: said.length === 0 ? undefined : said.join(" "),
  });

  function draw(width: number): Drawing {
    const first = shown[0]?.startMs ?? 0;
    const time = linearAxis(
      [...shown.flatMap(({ startMs, durationMs }) => [startMs, startMs + durationMs]), first],
      {
        start: left,
        end: width - right,
        ticks: Math.max(4, Math.round((width - right - left) / tickWidth)),
      },
    );
    const most = Math.max(1, ...shown.map(({ prefillTokens, decodeTokens }) => prefillTokens + decodeTokens));
    const tall = (tokens: number): number => round((tokens / most) * (bottom - laneTop));
    const bars = shown.map((step) => {
      const x = time.place(step.startMs);
      const barWidth = round(Math.max(1, time.place(step.startMs + step.durationMs) - x - 0.6));
      const prefill = tall(step.prefillTokens);
      const decode = tall(step.decodeTokens);
      const label = `${step.label}: ${formatValue(step.durationMs, "ms")}, ${step.prefillTokens} prompt and ${step.decodeTokens} decode tokens${step.isBlamed ? ", blamed" : ""}`;
      const flag = step.isBlamed
        ? `<path class="flag" d="M${round(x + barWidth / 2)} ${top - 4}l-6 -9h12z"/>`
        : "";
      return focusRow(
        `row step${step.isBlamed ? " blamed" : ""}`,
        label,
        `<rect class="time" x="${x}" y="${top}" width="${barWidth}" height="34" rx="2"/>${flag}` +
          `<rect class="decode" x="${x}" y="${round(bottom - decode)}" width="${barWidth}" height="${decode}"/>` +
          `<rect class="prefill" x="${x}" y="${round(bottom - decode - prefill)}" width="${barWidth}" height="${prefill}"/>`,
      );
    });
    const ticks = time.ticks.map(
      (tick) =>
        `<line class="grid" x1="${time.place(tick)}" y1="${top}" x2="${time.place(tick)}" y2="${bottom}"/><text class="tick" x="${time.place(tick)}" y="${bottom + 17}" text-anchor="middle">${escapeHtml(formatValue(tick, "ms"))}</text>`,
    );
    return {
      height: bottom + 26,
      content: `<g aria-hidden="true">${ticks.join("")}<text class="tick" x="${left - 8}" y="${top + 21}" text-anchor="end">time</text><text class="tick" x="${left - 8}" y="${laneTop + 40}" text-anchor="end">tokens</text><text class="tick" x="${left - 8}" y="${laneTop + 4}" text-anchor="end">${escapeHtml(significant(most, 0))}</text></g>${bars.join("")}`,
    };
  }
}

/** The blamed step and its neighbours where there are too many to draw. */
function around(steps: Steps["steps"]): Steps["steps"] {
  if (steps.length <= mostSteps) return steps;
  const blamed = Math.max(
    0,
    steps.findIndex(({ isBlamed }) => isBlamed),
  );
  const from = Math.min(Math.max(0, blamed - mostSteps / 2), steps.length - mostSteps);
  return steps.slice(from, from + mostSteps);
}
