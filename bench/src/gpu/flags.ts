import { parseArgs } from "node:util";
import { OctavoError } from "@octavo/protocol/errors";
import { defaultModelFolder } from "../cpu/models/model-file.js";
import { type FileType, fileTypes } from "../cpu/models/quantisation-mix.js";
import { modelShapes, type ShapeName } from "../cpu/models/shapes.js";

/** What is measured; undefined where the adapter decides, since software adapters take seconds for a step. */
export interface GpuFlags {
  readonly adapter: string | undefined;
  readonly model: string | undefined;
  readonly shapes: readonly ShapeName[] | undefined;
  readonly types: readonly FileType[];
  readonly streams: readonly number[];
  readonly promptTokens: number | undefined;
  readonly newTokens: number | undefined;
  /** After so many, no further model or peer is begun. */
  readonly minutes: number | undefined;
  /** Leaves out the second pass, with products on matrix units, where the adapter has them. */
  readonly lanesOnly: boolean;
  readonly transformersPython: string | undefined;
  readonly vllmPython: string | undefined;
  readonly modelFolder: string;
}

const usage = `npm run bench -- gpu [flags]
  --adapter NAME         part of the adapter's name (default: the fastest; SwiftShader where the machine has none)
  --model PATH           a model to measure (default: octavo-mini)
  --shapes LIST          of ${Object.keys(modelShapes).join(", ")}: random weights (default: llama-3.1-8b; none on software)
  --types LIST           of ${fileTypes.join(", ")} (default: f16,q4_0)
  --streams LIST         numbers of streams to decode (default: 1,32)
  --prompt N, --new N    tokens of a prefill (default: 2048; 40 on software) and of each stream (default: 64; 2 on software)
  --minutes N            begin nothing after so many minutes; what was measured is kept (default: no limit)
  --lanes-only           leave products on matrix units out, which adapters that have them are measured with too
  --transformers PYTHON  an interpreter that has torch and transformers: measured beside, on the shapes, in 16 bits
  --vllm PYTHON          one that has vLLM: likewise
  --model-folder DIR     where model files are kept (default: ${defaultModelFolder({})})`;

/** Throws `invalid_option` with the usage for what it does not know. */
export function readFlags(args: readonly string[]): GpuFlags {
  const values = parse(args);
  return {
    adapter: values.adapter,
    model: values.model,
    shapes: namesOf("shapes", values.shapes, Object.keys(modelShapes) as ShapeName[]),
    types: namesOf("types", values.types, fileTypes) ?? ["f16", "q4_0"],
    streams: (values.streams ?? "1,32").split(",").map((part) => countOf("streams", part)),
    promptTokens: values.prompt === undefined ? undefined : countOf("prompt", values.prompt),
    newTokens: values.new === undefined ? undefined : countOf("new", values.new),
    minutes: values.minutes === undefined ? undefined : countOf("minutes", values.minutes),
    lanesOnly: values["lanes-only"] === true,
    transformersPython: values.transformers,
    vllmPython: values.vllm,
    modelFolder: values["model-folder"] ?? defaultModelFolder(),
  };
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  const options = {
    adapter: text,
    model: text,
    shapes: text,
    types: text,
    streams: text,
    prompt: text,
    new: text,
    minutes: text,
    "lanes-only": { type: "boolean" } as const,
    transformers: text,
    vllm: text,
    "model-folder": text,
  };
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (cause) {
    throw new OctavoError("invalid_option", `${OctavoError.from(cause).message}\n\n${usage}`, { cause });
  }
}

function namesOf<T extends string>(
  flag: string,
  text: string | undefined,
  known: readonly T[],
): T[] | undefined {
  return text?.split(",").map((part) => {
    const name = known.find((candidate) => candidate === part.trim());
    if (name === undefined)
      throw new OctavoError("invalid_option", `--${flag}: "${part}" is not one of ${known.join(", ")}`);
    return name;
  });
}

function countOf(flag: string, text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new OctavoError("invalid_option", `--${flag}: "${text}" is not a whole number of at least 1`);
}
