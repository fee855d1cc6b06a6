import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { defaultThreadCount } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { defaultModelFolder } from "./models/model-file.js";
import { type FileType, fileTypes } from "./models/quantisation-mix.js";
import { modelShapes, type ShapeName } from "./models/shapes.js";

export const caseGroups = [
  "step",
  "start",
  "memory",
  "prefill",
  "decode",
  "shared",
  "server",
  "gaps",
  "avx2",
  "long",
] as const;
export type CaseGroup = (typeof caseGroups)[number];

export interface CpuOptions {
  readonly groups: readonly CaseGroup[];
  readonly shapes: readonly ShapeName[];
  readonly types: readonly FileType[];
  /** Numbers of streams that the decode cases run. */
  readonly streams: readonly number[];
  readonly threads: number;
  readonly repeats: number;
  readonly promptTokens: number;
  readonly newTokens: number;
  /** Small figures that say only that every case runs. */
  readonly isQuick: boolean;
  readonly llamaCppFolder: string | undefined;
  readonly llamaCppAvx2Folder: string | undefined;
  readonly withNodeLlamaCpp: boolean;
  /** A Python interpreter that has OpenVINO GenAI. */
  readonly openvinoPython: string | undefined;
  /** One that has vLLM for CPUs. */
  readonly vllmPython: string | undefined;
  /** Whether each peer is measured with several settings before a case, and the fastest is kept. */
  readonly isTuned: boolean;
  readonly modelFolder: string;
  /** Where the results go; undefined keeps the published ones. */
  readonly outputPath: string | undefined;
}

/** f16 is for GPUs. */
const usualTypes = fileTypes.filter((type) => type !== "f16");

export const usage = `npm run bench -- cpu [flags]
  --cases LIST           of ${caseGroups.join(", ")} (default: all)
  --models LIST          of ${Object.keys(modelShapes).join(", ")} (default: qwen2.5-0.5b,llama-3.2-1b)
  --types LIST           of ${fileTypes.join(", ")} (default: ${usualTypes.join(",")})
  --streams LIST         numbers of streams to decode (default: 1,8,32)
  --threads N            compute threads of every contender (default: the machine's cores)
  --repeats N            measurements of each case and contender (default: 3)
  --prompt N, --new N    tokens of a prompt (default: 512) and generated ones (default: 64)
  --quick                tiny model, short jobs, one measurement: shows that everything runs, publishes nothing
  --llama-cpp DIR        folder of llama-bench, llama-batched-bench, llama-server (or OCTAVO_BENCH_LLAMA_CPP)
  --llama-cpp-avx2 DIR   the same, built without AVX-512, for the avx2 cases (or OCTAVO_BENCH_LLAMA_CPP_AVX2)
  --no-node-llama-cpp    leave node-llama-cpp out, which is taken from NODE_LLAMA_CPP_DIR or node_modules
  --openvino PYTHON      an interpreter that has openvino_genai (or OCTAVO_BENCH_OPENVINO)
  --vllm PYTHON          an interpreter that has vLLM for CPUs; measured beside BF16 files (or OCTAVO_BENCH_VLLM)
  --no-tune              peers run with their defaults; else each is tried with a few settings per case and runs with the fastest
  --model-folder DIR     cache of generated models (or OCTAVO_BENCH_MODELS; default: ${defaultModelFolder({ XDG_CACHE_HOME: "~/.cache" })})
  --output FILE          results, merged by case (default: bench/results/cpu.json; none with --quick)`;

/** Parses the command line. Throws `invalid_option` for what it does not know. */
export function parseFlags(
  args: readonly string[],
  defaultOutput: string,
  env: NodeJS.ProcessEnv = process.env,
): CpuOptions {
  const values = read(args);
  const isQuick = values.quick === true;
  const folder = (flag: string | undefined, name: string): string | undefined => {
    const given = flag ?? env[name];
    return given === undefined || given === "" ? undefined : resolve(given);
  };
  const output = values.output ?? (isQuick ? undefined : defaultOutput);
  return {
    groups: list("cases", values.cases, caseGroups) ?? caseGroups,
    shapes:
      list("models", values.models, Object.keys(modelShapes) as ShapeName[]) ??
      (isQuick ? ["tiny"] : ["qwen2.5-0.5b", "llama-3.2-1b"]),
    types: list("types", values.types, fileTypes) ?? usualTypes,
    streams: counts("streams", values.streams) ?? (isQuick ? [1, 4] : [1, 8, 32]),
    threads: count("threads", values.threads) ?? defaultThreadCount(),
    repeats: count("repeats", values.repeats) ?? (isQuick ? 1 : 3),
    promptTokens: count("prompt", values.prompt) ?? (isQuick ? 64 : 512),
    newTokens: count("new", values.new) ?? (isQuick ? 16 : 64),
    isQuick,
    llamaCppFolder: folder(values["llama-cpp"], "OCTAVO_BENCH_LLAMA_CPP"),
    llamaCppAvx2Folder: folder(values["llama-cpp-avx2"], "OCTAVO_BENCH_LLAMA_CPP_AVX2"),
    openvinoPython: folder(values.openvino, "OCTAVO_BENCH_OPENVINO"),
    vllmPython: folder(values.vllm, "OCTAVO_BENCH_VLLM"),
    withNodeLlamaCpp: values["no-node-llama-cpp"] !== true,
    isTuned: !isQuick && values["no-tune"] !== true,
    modelFolder: values["model-folder"] ?? defaultModelFolder(env),
    outputPath: output === undefined ? undefined : resolve(output),
  };
}

function read(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        cases: { type: "string" },
        models: { type: "string" },
        types: { type: "string" },
        streams: { type: "string" },
        threads: { type: "string" },
        repeats: { type: "string" },
        prompt: { type: "string" },
        new: { type: "string" },
        quick: { type: "boolean" },
        "llama-cpp": { type: "string" },
        "llama-cpp-avx2": { type: "string" },
        "no-node-llama-cpp": { type: "boolean" },
        vllm: { type: "string" },
        openvino: { type: "string" },
        "no-tune": { type: "boolean" },
        "model-folder": { type: "string" },
        output: { type: "string" },
      },
    }).values;
  } catch (cause) {
    throw new OctavoError("invalid_option", `${OctavoError.from(cause).message}\n\n${usage}`, { cause });
  }
}

function list<T extends string>(
  flag: string,
  text: string | undefined,
  known: readonly T[],
): T[] | undefined {
  return text?.split(",").map((part) => {
    const name = known.find((candidate) => candidate === part.trim().toLowerCase());
    if (name === undefined) {
      throw new OctavoError("invalid_option", `--${flag}: "${part}" is not one of ${known.join(", ")}`, {
        param: flag,
      });
    }
    return name;
  });
}

function counts(flag: string, text: string | undefined): number[] | undefined {
  return text?.split(",").map((part) => count(flag, part) ?? 1);
}

function count(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new OctavoError("invalid_option", `--${flag}: "${text}" is not a whole number of at least 1`, {
    param: flag,
  });
}
