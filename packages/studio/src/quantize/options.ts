import { type GgufMix, ggufMixes } from "@octavo/artifacts/gguf/mixes";
import { OctavoError } from "@octavo/protocol";

/** What a user asks for. Absent means the method's default. */
export interface QuantizeOptions {
  /** awq, gptq, fp8, int8, nf4 or gguf:TYPE, e.g. "gguf:Q4_K_M". */
  readonly method: string;
  /** Folder that appears once all of it is written. */
  readonly out: string;
  /** Texts like those the model will see: .txt, or .jsonl with `text`, `prompt` or `messages`. */
  readonly calibration?: string | undefined;
  /** Sequences taken from the calibration texts, and tokens in each. Default 128 of 512. */
  readonly numSamples?: number | undefined;
  readonly sampleTokens?: number | undefined;
  /** Columns that share a scale; -1 for whole rows. awq and gptq: 128; nf4: 64. */
  readonly groupSize?: number | undefined;
  /** gptq: 2, 3, 4 (default) or 8. */
  readonly bits?: number | undefined;
  /** Modules left as they are; see `ignores`. Default `lm_head`. */
  readonly ignore?: readonly string[] | undefined;
  /** gptq: quantise the inputs that matter most first. */
  readonly actOrder?: boolean | undefined;
  /** nf4: quantise the blocks' maxima too. */
  readonly doubleQuant?: boolean | undefined;
  /** awq, gptq: plain rounding, without calibration; what the real methods are measured against. */
  readonly roundToNearest?: boolean | undefined;
  readonly revision?: string | undefined;
  readonly downloadDir?: string | undefined;
  readonly numThreads?: number | undefined;
}

/** A method with its settings, checked. */
export type MethodSettings =
  | { readonly kind: "awq"; readonly groupSize: number; readonly search: boolean }
  | {
      readonly kind: "gptq";
      readonly bits: 2 | 3 | 4 | 8;
      readonly groupSize: number;
      readonly actOrder: boolean;
      readonly solve: boolean;
    }
  | { readonly kind: "fp8" }
  | { readonly kind: "int8" }
  | { readonly kind: "nf4"; readonly blockSize: number; readonly doubleQuant: boolean }
  | { readonly kind: "gguf"; readonly mix: GgufMix };

/** What `--method` takes. */
export const quantizeMethods: readonly string[] = ["awq", "gptq", "fp8", "int8", "nf4", "gguf:TYPE"];

const groupSizes: readonly number[] = [-1, 32, 64, 128, 256, 512, 1024];
const blockSizes: readonly number[] = [64, 128, 256, 512, 1024, 2048, 4096];

/** @throws OctavoError `invalid_option` naming the option */
export function readMethod(options: QuantizeOptions): MethodSettings {
  const [name, type, ...rest] = options.method.split(":");
  if (rest.length > 0 || (type !== undefined && name !== "gguf")) throw unknownMethod(options.method);
  switch (name ?? "") {
    case "awq":
      return { kind: "awq", ...awqSettings(options) };
    case "gptq":
      return { kind: "gptq", ...gptqSettings(options) };
    case "fp8":
    case "int8":
      refuse(options, ["groupSize", "bits", "actOrder", "doubleQuant", "roundToNearest"]);
      return { kind: name === "fp8" ? "fp8" : "int8" };
    case "nf4": {
      refuse(options, ["bits", "actOrder", "roundToNearest"]);
      const blockSize = options.groupSize ?? 64;
      oneOf("group_size", blockSize, blockSizes, "nf4");
      return { kind: "nf4", blockSize, doubleQuant: options.doubleQuant ?? false };
    }
    case "gguf": {
      refuse(options, [
        "groupSize",
        "bits",
        "actOrder",
        "doubleQuant",
        "roundToNearest",
        "ignore",
        "calibration",
      ]);
      const mix = ggufMixes.get((type ?? "").toUpperCase());
      if (mix === undefined) {
        throw invalidOption(
          "method",
          `has the GGUF type ${JSON.stringify(type ?? "")}; known are ${[...ggufMixes.keys()].join(", ")}`,
        );
      }
      return { kind: "gguf", mix };
    }
    default:
      throw unknownMethod(options.method);
  }
}

/** Whether the method needs calibration texts. */
export function needsCalibration(settings: MethodSettings): boolean {
  return (settings.kind === "awq" && settings.search) || (settings.kind === "gptq" && settings.solve);
}

function awqSettings(options: QuantizeOptions): { groupSize: number; search: boolean } {
  refuse(options, ["actOrder", "doubleQuant"]);
  oneOf("bits", options.bits ?? 4, [4], "awq");
  const groupSize = options.groupSize ?? 128;
  oneOf("group_size", groupSize, groupSizes, "awq");
  return { groupSize, search: options.roundToNearest !== true };
}

function gptqSettings(options: QuantizeOptions): Omit<Extract<MethodSettings, { kind: "gptq" }>, "kind"> {
  refuse(options, ["doubleQuant"]);
  const bits = options.bits ?? 4;
  if (bits !== 2 && bits !== 3 && bits !== 4 && bits !== 8) {
    throw invalidOption("bits", `must be 2, 3, 4 or 8 for gptq, not ${bits}`);
  }
  const groupSize = options.groupSize ?? 128;
  oneOf("group_size", groupSize, groupSizes, "gptq");
  const solve = options.roundToNearest !== true;
  if (!solve && options.actOrder === true) {
    throw invalidOption("act_order", "needs the inputs' weights, which round_to_nearest does without");
  }
  return { bits, groupSize, actOrder: options.actOrder ?? false, solve };
}

const flagNames = {
  groupSize: "group_size",
  bits: "bits",
  actOrder: "act_order",
  doubleQuant: "double_quant",
  roundToNearest: "round_to_nearest",
  ignore: "ignore",
  calibration: "calibration",
} as const;

/** Refuses options that the method would ignore. */
function refuse(options: QuantizeOptions, keys: readonly (keyof typeof flagNames)[]): void {
  for (const key of keys) {
    if (options[key] !== undefined && options[key] !== false) {
      throw invalidOption(flagNames[key], `means nothing to the method ${options.method}`);
    }
  }
}

function oneOf(name: string, value: number, allowed: readonly number[], method: string): void {
  if (!allowed.includes(value)) {
    throw invalidOption(name, `must be ${allowed.join(", ")} for ${method}, not ${value}`);
  }
}

function unknownMethod(method: string): OctavoError {
  return invalidOption(
    "method",
    `must be one of ${quantizeMethods.join(", ")}, not ${JSON.stringify(method.slice(0, 100))}`,
  );
}

export function invalidOption(param: string, problem: string): OctavoError {
  return new OctavoError("invalid_option", `${param} ${problem}.`, { param });
}
