import type { Summary } from "../summary.js";
import { escapeHtml } from "./escape.js";
import { round } from "./interval-chart.js";

const width = 720;
const height = 220;
const bottom = 170;
const top = 14;
const left = 20;

/** Tokens by the power of ten of their divergence; every bar can be reached with the keyboard and says its count. */
export function klHistogram(bins: Summary["klHistogram"], total: number): string {
  const most = Math.max(1, ...bins.map(({ tokens }) => tokens));
  const step = (width - 2 * left) / bins.length;
  const bars = bins.map((bin, index) => {
    const barHeight = round(((bottom - top) * bin.tokens) / most);
    const x = round(left + index * step);
    const share = `${((100 * bin.tokens) / Math.max(1, total)).toFixed(1)} %`;
    const label = `${rangeText(bin)}: ${bin.tokens} tokens, ${share}`;
    return (
      `<g class="row" tabindex="0" role="listitem" aria-label="${escapeHtml(label)}"><title>${escapeHtml(label)}</title>` +
      `<rect class="focus" x="${x}" y="2" width="${round(step - 2)}" height="${height - 4}" rx="4"/>` +
      `<rect class="bar" x="${round(x + step * 0.12)}" y="${bottom - barHeight}" width="${round(step * 0.72)}" height="${barHeight}"/>` +
      `<text class="tick" x="${round(x + step / 2)}" y="${bottom + 18}" text-anchor="middle">${escapeHtml(shortText(bin))}</text>` +
      `<text class="tick" x="${round(x + step / 2)}" y="${bottom - barHeight - 4}" text-anchor="middle">${bin.tokens === 0 ? "" : share}</text></g>`
    );
  });
  return (
    '<figure><figcaption id="histogram-title">Tokens by the size of their divergence</figcaption><div class="scroll">' +
    `<svg viewBox="0 0 ${width} ${height}" role="list" aria-labelledby="histogram-title">${bars.join("")}` +
    `<text class="tick" aria-hidden="true" x="${width / 2}" y="${bottom + 40}" text-anchor="middle">KL of a token, nats</text></svg></div></figure>`
  );
}

type Bin = Summary["klHistogram"][number];

function rangeText({ from, to }: Bin): string {
  if (to === undefined) return `${from} nats and more`;
  return from === 0
    ? `under ${to.toExponential(0)} nats`
    : `${from.toExponential(0)} to ${to.toExponential(0)} nats`;
}

function shortText({ from, to }: Bin): string {
  if (to === undefined) return `\u2265 ${from.toExponential(0)}`;
  return from === 0 ? `< ${to.toExponential(0)}` : from.toExponential(0);
}
