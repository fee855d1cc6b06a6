/** Values to pixels, with ticks at round numbers. */
export interface ChartAxis {
  readonly ticks: readonly number[];
  /** Pixels of a value; values outside the axis stay at its edge. */
  place(value: number): number;
}

export interface AxisPixels {
  readonly start: number;
  /** Below `start` where the axis runs upwards. */
  readonly end: number;
  /** How many ticks to aim for. */
  readonly ticks?: number;
}

/** Covers the finite ones of `values`, from round number to round number. */
export function linearAxis(values: readonly number[], pixels: AxisPixels): ChartAxis {
  let [low, high] = rangeOf(values);
  if (low === high) {
    const pad = low === 0 ? 1 : Math.abs(low) / 2;
    [low, high] = [low - pad, high + pad];
  }
  const step = niceStep((high - low) / ((pixels.ticks ?? 5) - 1));
  const first = Math.floor(low / step + 1e-9);
  const last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, index) =>
      Number(((first + index) * step).toPrecision(12)),
    ),
    place: (value) => between(pixels, (value / step - first) / (last - first)),
  };
}

/** Covers the positive ones of `values`, from power of ten to power of ten; zero stands at the start. */
export function logAxis(values: readonly number[], pixels: AxisPixels): ChartAxis {
  const powers = values.filter((value) => value > 0).map((value) => Math.log10(value));
  const [least, most] = rangeOf(powers);
  const low = Math.floor(least);
  const high = Math.max(low + 1, Math.ceil(most));
  const step = Math.ceil((high - low) / ((pixels.ticks ?? 7) - 1));
  const ticks = [];
  for (let power = low; power <= high; power += step) ticks.push(10 ** power);
  return {
    ticks,
    place: (value) => between(pixels, value <= 0 ? 0 : (Math.log10(value) - low) / (high - low)),
  };
}

/** The least and the greatest finite value; 0 and 1 where there is none. */
export function rangeOf(values: readonly number[]): [number, number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}

function between({ start, end }: AxisPixels, share: number): number {
  return round(start + (Number.isNaN(share) ? 0 : Math.min(1, Math.max(0, share))) * (end - start));
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
