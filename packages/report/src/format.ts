const numberFormats = [0, 1, 2, 3].map(
  (maximumFractionDigits) => new Intl.NumberFormat("en-US", { maximumFractionDigits }),
);
const wholeNumbers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A figure with its unit, as people read it. Units are those of hypotheses and gate items; any other stands behind the figure. */
export function formatValue(value: number | undefined, unit: string): string {
  if (value === undefined || Number.isNaN(value)) return "\u2013";
  if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "\u2212\u221e";
  switch (unit) {
    case "share":
      return `${significant(100 * value, 1)} %`;
    case "ratio":
      return `${significant(value, 2)}\u00d7`;
    case "ms":
      return Math.abs(value) >= 10_000 ? `${significant(value / 1000, 1)} s` : `${significant(value, 1)} ms`;
    case "usd":
      return `$${value === 0 ? "0" : value.toPrecision(3)}`;
    case "nats":
      return `${small(value)} nats`;
    case "tokens_per_second":
      return `${significant(value, 1)} tokens/s`;
    case "tokens":
      return `${significant(value, 1)} tokens`;
    case "count":
      return significant(value, 2);
    default:
      return `${small(value)}${unit === "" || unit === "score" ? "" : ` ${unit}`}`;
  }
}

export function formatInterval(interval: readonly [number, number] | undefined, unit: string): string {
  if (interval === undefined) return "\u2013";
  return `${formatValue(interval[0], unit)} to ${formatValue(interval[1], unit)}`;
}

export function formatP(value: number | undefined): string {
  if (value === undefined) return "\u2013";
  return value < 0.001 ? "< 0.001" : value.toFixed(3);
}

export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 1) return `${Math.round(ms)} ms`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** With thousands apart and a true minus; at most so many decimals, and none of large numbers. */
export function significant(value: number, decimals: number): string {
  const places = Math.abs(value) >= 1000 ? 0 : decimals;
  return minus((numberFormats[places] ?? wholeNumbers).format(value));
}

function small(value: number): string {
  if (value === 0) return "0";
  return minus(Math.abs(value) < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(3))));
}

function minus(text: string): string {
  return text === "-0" ? "0" : text.replace(/^-/, "\u2212");
}
