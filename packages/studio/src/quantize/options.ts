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

const optionNames = {
  groupSize: "group_size",
  bits: "bits",
  actOrder: "act_order",
  doubleQuant: "double_quant",
  roundToNearest: "round_to_nearest",
  ignore: "ignore",
  calibration: "calibration",
} as const;

/** A value of `--method`. */
interface QuantizeMethod {
  /** The options that it heeds; others are refused. */
  readonly takes: readonly (keyof typeof optionNames)[];
  /** @param type what follows a colon in the method's name */
  read(options: QuantizeOptions, type: string | undefined): MethodSettings;
}

const groupSizes: readonly number[] = [-1, 32, 64, 128, 256, 512, 1024];
const blockSizes: readonly number[] = [64, 128, 256, 512, 1024, 2048, 4096];

const methods: Readonly<Record<MethodSettings["kind"], QuantizeMethod>> = {
  awq: {
    takes: ["bits", "groupSize", "roundToNearest", "ignore", "calibration"],
    read: ({ bits = 4, groupSize = 128, roundToNearest }) => {
      oneOf("bits", bits, [4], "awq");
      oneOf("group_size", groupSize, groupSizes, "awq");
      return { kind: "awq", groupSize, search: roundToNearest !== true };
    },
  },
  gptq: {
    takes: ["bits", "groupSize", "actOrder", "roundToNearest", "ignore", "calibration"],
    read: ({ bits = 4, groupSize = 128, actOrder = false, roundToNearest }) => {
      if (bits !== 2 && bits !== 3 && bits !== 4 && bits !== 8) {
        throw invalidOption("bits", `must be 2, 3, 4 or 8 for gptq, not ${bits}`);
      }
      oneOf("group_size", groupSize, groupSizes, "gptq");
      const solve = roundToNearest !== true;
      if (!solve && actOrder) {
        throw invalidOption(
          "act_order",
          "needs the inputs' weights, which rounding to the nearest does without",
        );
      }
      return { kind: "gptq", bits, groupSize, actOrder, solve };
    },
  },
  fp8: { takes: ["ignore", "calibration"], read: () => ({ kind: "fp8" }) },
  int8: { takes: ["ignore", "calibration"], read: () => ({ kind: "int8" }) },
  nf4: {
    takes: ["groupSize", "doubleQuant", "ignore", "calibration"],
    read: ({ groupSize: blockSize = 64, doubleQuant = false }) => {
      oneOf("group_size", blockSize, blockSizes, "nf4");
      return { kind: "nf4", blockSize, doubleQuant };
    },
  },
  gguf: {
    takes: ["calibration"],
    read: ({ calibration, method }, type = "") => {
      const mix = ggufMixes.get(type.toUpperCase());
      if (mix === undefined) {
        throw invalidOption(
          "method",
          `has the GGUF type ${JSON.stringify(type)}; known are ${[...ggufMixes.keys()].join(", ")}`,
        );
      }
      if (calibration !== undefined && !mix.takesImportance) {
        throw invalidOption("calibration", `means nothing to the method ${method}`);
      }
      return { kind: "gguf", mix };
    },
  },
};

/** What `--method` takes. */
export const quantizeMethods: readonly string[] = Object.keys(methods).map((name) =>
  name === "gguf" ? "gguf:TYPE" : name,
);

/** @throws OctavoError `invalid_option` naming the option */
export function readMethod(options: QuantizeOptions): MethodSettings {
  const [name = "", type, ...rest] = options.method.split(":");
  const method = Object.hasOwn(methods, name) ? methods[name as keyof typeof methods] : undefined;
  if (method === undefined || rest.length > 0 || (type !== undefined && name !== "gguf")) {
    throw invalidOption(
      "method",
      `must be one of ${quantizeMethods.join(", ")}, not ${JSON.stringify(options.method.slice(0, 100))}`,
    );
  }
  for (const key of Object.keys(optionNames) as (keyof typeof optionNames)[]) {
    if (method.takes.includes(key) || options[key] === undefined || options[key] === false) continue;
    throw invalidOption(optionNames[key], `means nothing to the method ${options.method}`);
  }
  return method.read(options, type);
}

/** Whether the method needs calibration texts. */
export function needsCalibration(settings: MethodSettings): boolean {
  return (settings.kind === "awq" && settings.search) || (settings.kind === "gptq" && settings.solve);
}

function oneOf(name: string, value: number, allowed: readonly number[], method: string): void {
  if (!allowed.includes(value)) {
    throw invalidOption(name, `must be ${allowed.join(", ")} for ${method}, not ${value}`);
  }
}

export function invalidOption(param: string, problem: string): OctavoError {
  return new OctavoError("invalid_option", `${param} ${problem}.`, { param });
}
