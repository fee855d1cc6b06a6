/** A linear axis from round number to round number. */
export interface Axis {
  readonly ticks: readonly number[];
  readonly from: number;
  readonly to: number;
  /** Pixels of a value; what lies outside stays at the edge. */
  place(value: number): number;
}

/** Covers the finite ones of `values` between the pixels `start` and `end`, which may run downwards. */
export function linearAxis(
  values: readonly number[],
  { start, end, ticks = 5 }: { readonly start: number; readonly end: number; readonly ticks?: number },
): Axis {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) [low, high] = [0, 1];
  if (low === high) {
    const pad = low === 0 ? 1 : Math.abs(low) / 2;
    [low, high] = [low - pad, high + pad];
  }
  const step = niceStep((high - low) / (ticks - 1));
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  const from = first * step;
  const to = last * step;
  return {
    from,
    to,
    ticks: Array.from({ length: last - first + 1 }, (_, index) =>
      Number(((first + index) * step).toPrecision(12)),
    ),
    place: (value) => {
      const share = Math.min(1, Math.max(0, (value - from) / (to - from)));
      return round(start + (Number.isNaN(share) ? 0 : share) * (end - start));
    },
  };
}

function niceStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  const digit = raw / power;
  return (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * power;
}

/** To a tenth of a pixel. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}
