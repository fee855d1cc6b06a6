import type { Estimate } from "../summary.js";
import { escapeHtml } from "./escape.js";

export interface IntervalRow {
  readonly name: string;
  readonly estimate: Estimate;
}

export interface IntervalChart {
  readonly id: string;
  readonly title: string;
  /** What the axis measures. */
  readonly unit: string;
  readonly rows: readonly IntervalRow[];
  /** `log` where values span powers of ten; zeros then stand at the axis' beginning. */
  readonly scale: "linear" | "log";
  readonly show: (value: number) => string;
}

const width = 720;
const left = 150;
const right = 90;
const rowHeight = 34;
const top = 10;

/** Points with their intervals, one row each. Every row can be reached with the keyboard and says its figures. */
export function intervalChart(chart: IntervalChart): string {
  const { rows, id, title, unit, show } = chart;
  const height = top + rows.length * rowHeight + 46;
  const axis = axisOf(chart);
  const bottom = top + rows.length * rowHeight;
  const ticks = axis.ticks.map((tick) => {
    const x = round(axis.place(tick));
    return `<line class="grid" x1="${x}" y1="${top}" x2="${x}" y2="${bottom}"/><text class="tick" x="${x}" y="${bottom + 18}" text-anchor="middle">${escapeHtml(chart.scale === "log" ? String(Number(tick.toPrecision(1))) : show(tick))}</text>`;
  });
  const marks = rows.map(({ name, estimate }, index) => {
    const y = top + index * rowHeight + rowHeight / 2;
    const { value, interval } = estimate;
    const x = round(axis.place(value));
    const label = `${name}: ${show(value)}${interval === undefined ? ", no interval" : `, 95 % interval ${show(interval[0])} to ${show(interval[1])}`}`;
    const bar =
      interval === undefined
        ? ""
        : `<line class="interval" x1="${round(axis.place(interval[0]))}" y1="${y}" x2="${round(axis.place(interval[1]))}" y2="${y}"/>`;
    return (
      `<g class="row" tabindex="0" role="listitem" aria-label="${escapeHtml(label)}"><title>${escapeHtml(label)}</title>` +
      `<rect class="focus" x="2" y="${y - rowHeight / 2 + 2}" width="${width - 4}" height="${rowHeight - 4}" rx="4"/>` +
      `<text class="name" x="${left - 14}" y="${y + 5}" text-anchor="end">${escapeHtml(name)}</text>${bar}` +
      `<circle class="point" cx="${x}" cy="${y}" r="5"/><text class="value" x="${width - right + 14}" y="${y + 5}">${escapeHtml(show(value))}</text></g>`
    );
  });
  return (
    `<figure><figcaption id="${id}-title">${escapeHtml(`${title}, ${unit}`)}</figcaption><div class="scroll">` +
    `<svg viewBox="0 0 ${width} ${height}" role="list" aria-labelledby="${id}-title">` +
    `<g aria-hidden="true">${ticks.join("")}<text class="tick" x="${(left + width - right) / 2}" y="${bottom + 38}" text-anchor="middle">${escapeHtml(unit)}</text></g>` +
    `${marks.join("")}</svg></div></figure>`
  );
}

interface Axis {
  readonly ticks: readonly number[];
  place(value: number): number;
}

function axisOf({ rows, scale }: IntervalChart): Axis {
  const values = rows
    .flatMap(({ estimate }) => [estimate.value, ...(estimate.interval ?? [])])
    .filter((value) => Number.isFinite(value));
  const span = width - left - right;
  const most = Math.max(0, ...values);
  const positive = values.filter((value) => value > 0);
  if (scale === "log" && positive.length > 0) {
    const low = Math.floor(Math.log10(Math.min(...positive)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(most)));
    const step = Math.ceil((high - low) / 6);
    const ticks = [];
    for (let power = low; power <= high; power += step) ticks.push(10 ** power);
    return {
      ticks,
      place: (value) =>
        left + (value <= 0 ? 0 : Math.max(0, (Math.log10(value) - low) / (high - low))) * span,
    };
  }
  const least = Math.min(0, ...values);
  const step = niceStep((most - least || 1) / 4);
  const first = Math.floor(least / step);
  const last = Math.max(first + 1, Math.ceil(most / step));
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step),
    place: (value) => left + ((value / step - first) / (last - first)) * span,
  };
}

function niceStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  const digit = raw / power;
  return (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * power;
}

export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
