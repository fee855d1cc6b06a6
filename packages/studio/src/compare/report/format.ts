import type { ScoreEstimate } from "./summary.js";

/** Figures as table and page show them. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return value.toExponential(1);
  return size >= 100 ? value.toFixed(1) : value.toPrecision(3);
}

/** Perplexities differ in late digits. */
export function fixed(value: number): string {
  return Number.isFinite(value) ? value.toFixed(value >= 100 ? 2 : 4) : "-";
}

export function percent(value: number): string {
  return `${(100 * value).toFixed(2)} %`;
}

export function intervalText({ interval }: ScoreEstimate, show: (value: number) => string): string {
  return interval === undefined ? "" : `[${show(interval[0])}, ${show(interval[1])}]`;
}

export function gibibytes(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** A row of a table of both models, where one of them declares rounded activations. */
export function activationRows(
  ...models: readonly {
    readonly activations?: { readonly declared: string; readonly isFollowed: boolean };
  }[]
): string[][] {
  if (models.every(({ activations }) => activations === undefined)) return [];
  const shown = models.map(({ activations }) => {
    if (activations === undefined) return "exact";
    return activations.isFollowed ? activations.declared : `exact; declared are ${activations.declared}`;
  });
  return [["activations", ...shown]];
}
