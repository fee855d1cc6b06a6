import {
  atLeast,
  atMost,
  type CaseFigure,
  type CaseMaker,
  type CaseSpec,
  type PeerName,
  peerNames,
} from "./case-spec.js";
import type { CaseGroup, CpuOptions } from "./flags.js";
import type { FileType } from "./models/quantisation-mix.js";
import { kvBytesOf } from "./models/shapes.js";
import { gaps, server } from "./server-cases.js";

/** vLLM runs on bf16 weights alone; OpenVINO imports the types that 8-bit activations multiply. */
function peersFor(type: FileType): readonly PeerName[] {
  return peerNames.filter((name) =>
    name === "vllm" ? type === "bf16" : name !== "openvino" || type !== "bf16",
  );
}

const prefillTargets: Readonly<Record<FileType, number>> = { q4_0: 3, q4_k_m: 3, q8_0: 4, bf16: 2, f16: 2 };

function prefillFigure(type: FileType, targets: CaseFigure["peers"]): CaseFigure {
  return {
    label: "",
    metric: "prefillTokensPerSecond",
    unit: "tokens/s",
    isBetter: "higher",
    // The matrices alone: attention comes on top.
    bound: (model) => ({
      limit: type.endsWith("f16") ? "bf16Gflops" : "int8Gops",
      perUnit: 2 * model.multiplyAddsPerToken,
    }),
    ...(targets && { peers: targets }),
  };
}

/** A step reads every weight once and each stream's keys and values. */
function decodeFigure(
  streams: number,
  contextTokens: number,
  targets: CaseFigure["peers"],
  share?: number,
): CaseFigure {
  return {
    label: "",
    metric: "decodeTokensPerSecond",
    unit: "tokens/s",
    isBetter: "higher",
    bound: (model) => ({
      limit: "readGBps",
      perUnit: model.weightBytes / streams + contextTokens * kvBytesOf(model.shape),
    }),
    ...(share !== undefined && { own: [atLeast(share, "share of limit")] }),
    ...(targets && { peers: targets }),
  };
}

const prefill: CaseMaker = (shape, type, { promptTokens }) => [
  {
    group: "prefill",
    name: `prefill ${promptTokens}`,
    shape,
    type,
    job: { kind: "prefill", promptTokens, rounds: 3 },
    figures: [
      prefillFigure(type, {
        "llama.cpp": atLeast(prefillTargets[type]),
        ...(type !== "bf16" && { "node-llama-cpp": atLeast(3) }),
      }),
    ],
    peers: peersFor(type),
  },
];

const manyStreams: Readonly<Record<number, CaseFigure["peers"]>> = {
  8: { "llama.cpp": atLeast(3.5), "node-llama-cpp": atLeast(6) },
  32: { "llama.cpp": atLeast(4), "node-llama-cpp": atLeast(8) },
};

const decode: CaseMaker = (shape, type, { streams, promptTokens, newTokens }) =>
  streams
    .filter((count) => count === 1 || type === "q4_0")
    .map((count) => {
      const contextTokens = promptTokens + newTokens / 2;
      const isSingle = count === 1;
      const targets: CaseFigure["peers"] = isSingle
        ? { "llama.cpp": atLeast(1.5), "node-llama-cpp": atLeast(1.8) }
        : manyStreams[count];
      const isHeld = type !== "bf16";
      return {
        group: "decode",
        name: `decode, ${count} ${isSingle ? "stream" : "streams"}`,
        shape,
        type,
        job: { kind: "decode", streams: count, promptTokens, newTokens },
        figures: [
          decodeFigure(
            count,
            contextTokens,
            isHeld ? targets : undefined,
            isSingle && isHeld ? 0.85 : undefined,
          ),
          ...(count === 32 ? [outsideNative] : []),
        ],
        peers: peersFor(type),
      };
    });

const outsideNative: CaseFigure = {
  label: "outside the native call",
  metric: "outsideNativeShare",
  unit: "% of a step",
  scale: 100,
  isBetter: "lower",
  own: [atMost(5, "octavo")],
};

const shared: CaseMaker = (shape, type, { isQuick, newTokens }) => {
  if (type !== "q4_0") return [];
  const [streams, prefixTokens, promptTokens] = isQuick ? [8, 192, 224] : [32, 448, 512];
  const endToEnd: CaseFigure = {
    label: "",
    metric: "endToEndTokensPerSecond",
    unit: "tokens/s",
    isBetter: "higher",
  };
  const saved: CaseFigure = {
    label: "prefill work saved",
    metric: "prefillSaved",
    unit: "%",
    scale: 100,
    isBetter: "higher",
    own: [atLeast(95, "octavo")],
  };
  const name = `${streams} streams sharing ${prefixTokens} tokens`;
  const job = { kind: "shared-prefix", streams, prefixTokens, promptTokens, newTokens } as const;
  return [
    {
      group: "shared",
      name,
      shape,
      type,
      job: { ...job, through: "library" },
      figures: [{ ...endToEnd, peers: { "node-llama-cpp": atLeast(10) } }, saved],
      peers: ["node-llama-cpp"],
    },
    {
      group: "shared",
      name: `${name}, over HTTP`,
      shape,
      type,
      job: { ...job, through: "http" },
      figures: [{ ...endToEnd, peers: { "llama.cpp": atLeast(6) } }],
      peers: ["llama.cpp"],
    },
  ];
};

const long: CaseMaker = (shape, type, { isQuick }) => {
  if (type !== "q4_0") return [];
  const [prompt, contexts] = isQuick ? [2048, [1024, 2048]] : [16_384, [8192, 32_768]];
  const newTokens = 32;
  return [
    {
      group: "long",
      name: `prefill ${prompt}`,
      shape,
      type,
      job: { kind: "prefill", promptTokens: prompt, rounds: 1 },
      figures: [prefillFigure(type, { "llama.cpp": atLeast(2) })],
      peers: ["llama.cpp"],
    },
    ...contexts.map((context): CaseSpec => ({
      group: "long",
      name: `decode at ${context} tokens`,
      shape,
      type,
      job: { kind: "decode", streams: 1, promptTokens: context, newTokens },
      figures: [decodeFigure(1, context + newTokens / 2, undefined, 0.9)],
      // Its own prefill of 32k tokens takes a quarter of an hour, and the case is held to the machine's limit.
      peers: context > 8192 ? [] : ["llama.cpp"],
    })),
  ];
};

const memory: CaseMaker = (shape, type, { promptTokens }) => [
  {
    group: "memory",
    name: "peak memory",
    shape,
    type,
    job: { kind: "memory", promptTokens, newTokens: 32 },
    figures: [
      {
        label: "",
        metric: "peakBytes",
        unit: "MB",
        scale: 1e-6,
        isBetter: "lower",
        peers: { "llama.cpp": atMost(1.15), "node-llama-cpp": atMost(1) },
      },
      {
        label: "without mapped files",
        metric: "anonymousBytes",
        unit: "MB",
        scale: 1e-6,
        isBetter: "lower",
        peers: { "llama.cpp": { on: "ratio" }, "node-llama-cpp": { on: "ratio" } },
      },
    ],
    peers: peersFor(type),
  },
];

/** Packed weights kept on disk make every start but the first one a mapping of a file. */
const start: CaseMaker = (shape, type) =>
  [false, true].map((keepsPacked) => ({
    group: "start",
    name: `process start to first token${keepsPacked ? ", packed weights kept" : ""}`,
    shape,
    type,
    job: { kind: "first-token", promptTokens: 8, keepsPacked },
    figures: [
      {
        label: "",
        metric: "firstTokenMs",
        unit: "ms",
        isBetter: "lower",
        peers: { "llama.cpp": atMost(1), "node-llama-cpp": atMost(0.7) },
        ...(keepsPacked && type.startsWith("q4") && { own: [atMost(1000, "octavo")] }),
      },
    ],
    peers: peersFor(type),
  }));

const avx2: CaseMaker = (shape, type, options) => {
  if (type !== "q4_0") return [];
  const contextTokens = options.promptTokens + options.newTokens / 2;
  const targets: CaseFigure["peers"] = { "llama.cpp": atLeast(1.2) };
  return [
    ...prefill(shape, type, options).map((base) => ({ ...base, figures: [prefillFigure(type, targets)] })),
    ...decode(shape, type, { ...options, streams: [1] }).map((base) => ({
      ...base,
      figures: [decodeFigure(1, contextTokens, targets)],
    })),
  ].map((base) => ({
    ...base,
    group: "avx2",
    name: `${base.name}, AVX2 alone`,
    isa: "avx2",
    peers: ["llama.cpp"],
  }));
};

/** Where the engine's own part of a step is largest: the smallest model, whatever models are asked for. */
function waiting({ isQuick }: CpuOptions): CaseSpec {
  return {
    group: "step",
    name: "step with 10,000 waiting requests",
    shape: "tiny",
    type: "q4_0",
    job: { kind: "waiting", streams: 32, waiting: 10_000, steps: isQuick ? 50 : 200 },
    figures: [
      {
        label: "against none waiting",
        metric: "stepCostRatio",
        unit: "x",
        isBetter: "lower",
        own: [atMost(1.05, "octavo")],
      },
    ],
    peers: [],
  };
}

const makers: Readonly<Record<Exclude<CaseGroup, "step">, CaseMaker>> = {
  prefill,
  decode,
  shared,
  long,
  memory,
  start,
  server,
  gaps,
  avx2,
};

/** The cases of a run, in the order in which they are measured: each model's file stays in the page cache while it is used. */
export function chosenCases(options: CpuOptions): CaseSpec[] {
  const cases = options.shapes.flatMap((shape) =>
    options.types.flatMap((type) =>
      options.groups.flatMap((group) => (group === "step" ? [] : makers[group](shape, type, options))),
    ),
  );
  return [...(options.groups.includes("step") ? [waiting(options)] : []), ...cases];
}

export function fullName({ name, shape, type }: CaseSpec): string {
  return `${name}, ${shape} ${type.toUpperCase()}`;
}
