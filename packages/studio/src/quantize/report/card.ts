import type { CalibrationFacts } from "../calibration/texts.js";
import type { MethodSettings } from "../options.js";
import type { UnitRecord } from "../output/work-folder.js";
import { json } from "../output/safetensors-converter.js";

/** What an artifact says of how it was made: `octavo-quantization.json`. */
export interface QuantizationCard {
  readonly tool: "octavo quantize";
  readonly method: string;
  /** The method's settings in full, defaults included. */
  readonly settings: MethodSettings;
  readonly source: {
    readonly name: string;
    readonly architecture: string;
    readonly dtype: string;
    readonly weightBytes: number;
  };
  readonly weightBytes: number;
  readonly calibration: CalibrationFacts | null;
  /** What `error` compares: squared error relative to the original, of outputs on the calibration texts or of the weights. */
  readonly errorOf: "outputs" | "weights";
  readonly modules: readonly { readonly name: string; readonly type: string; readonly error: number }[];
}

export function describeModules(units: readonly UnitRecord[]): QuantizationCard["modules"] {
  return units
    .flatMap((unit) => unit.modules)
    .map(({ name, type, error }) => ({ name, type, error: Number(error.toPrecision(4)) }));
}

export function cardJson(card: QuantizationCard): string {
  return json(card);
}

/** README.md: the same for people. */
export function cardText(card: QuantizationCard): string {
  const { source, calibration } = card;
  const rows = layerRows(card.modules).map(
    ({ place, types, mean, worst, worstName }) =>
      `| ${place} | ${types} | ${percent(mean)} | ${percent(worst)} (${worstName}) |`,
  );
  const measure =
    card.errorOf === "outputs"
      ? "the squared error of each matrix's output on the calibration texts, relative to the original's"
      : "the squared error of each matrix, relative to the original";
  return [
    `# ${source.name.split(/[\\/]/).findLast((part) => part !== "") ?? source.name}, ${card.method}`,
    "",
    `Made by \`octavo quantize\` from ${source.name} (${source.architecture}, ${source.dtype}): ` +
      `${megabytes(source.weightBytes)} of weights became ${megabytes(card.weightBytes)}.`,
    "",
    calibration === null
      ? "No calibration texts were used."
      : `Calibrated on ${calibration.sequences} sequences, ${calibration.tokens} tokens, of a file with the SHA-256 ` +
        `\`${calibration.sha256}\`.`,
    "",
    `Errors are ${measure}.`,
    "",
    "| layer | types | mean error | largest error |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    "All settings and each matrix's error: `octavo-quantization.json`.",
    "",
  ].join("\n");
}

interface LayerRow {
  readonly place: string;
  readonly types: string;
  readonly mean: number;
  readonly worst: number;
  readonly worstName: string;
}

function layerRows(modules: QuantizationCard["modules"]): LayerRow[] {
  const places = new Map<string, QuantizationCard["modules"][number][]>();
  for (const module of modules) {
    const place = /^model\.layers\.(\d+)\./.exec(module.name)?.[1] ?? module.name;
    places.set(place, [...(places.get(place) ?? []), module]);
  }
  return Array.from(places, ([place, own]) => {
    const worst = own.reduce((a, b) => (b.error > a.error ? b : a));
    return {
      place,
      types: [...new Set(own.map((module) => module.type))].join(", "),
      mean: own.reduce((sum, module) => sum + module.error, 0) / own.length,
      worst: worst.error,
      worstName: worst.name.split(".").at(-1) ?? worst.name,
    };
  });
}

function percent(share: number): string {
  return `${(share * 100).toPrecision(3)} %`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e8 ? 1 : 0)} MB`;
}
