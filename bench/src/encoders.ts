// Encoders beside ONNX Runtime: one BERT of MiniLM-L6's shape with random weights, as f32 and with linears in int8, on the same cores in
// one process. Both are checked against each other first; they take turns, in reverse order every other round. ONNX Runtime runs its own
// fused attention, pads the texts of a batch to the longest, and is told their lengths.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { LLM } from "@octavo/engine";
import { defaultThreadCount } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol";
import { onnxBert } from "./encoders/onnx-model.js";
import { bertShape, randomBert, writeFolder } from "./encoders/random-bert.js";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    threads: { type: "string", default: String(defaultThreadCount()) },
    "onnxruntime-folder": { type: "string", default: process.env["ONNXRUNTIME_NODE_DIR"] ?? "" },
  },
});
const threads = Number(values.threads);

/** What of onnxruntime-node is used here. */
interface OnnxRuntime {
  readonly Tensor: new (type: string, data: BigInt64Array | Int32Array, dims: readonly number[]) => object;
  readonly InferenceSession: { create(path: string, options: object): Promise<OnnxSession> };
}
interface OnnxSession {
  run(
    feeds: Readonly<Record<string, object>>,
  ): Promise<Readonly<Record<string, { readonly data: Float32Array }>>>;
}

function findOnnxRuntime(): OnnxRuntime {
  try {
    const folder = values["onnxruntime-folder"];
    return createRequire(folder === "" ? import.meta.url : join(folder, "package.json"))(
      "onnxruntime-node",
    ) as OnnxRuntime;
  } catch (error) {
    const message =
      "onnxruntime-node is not here: `npm install onnxruntime-node@1.30.0` in some folder, and name it with --onnxruntime-folder or in ONNXRUNTIME_NODE_DIR";
    throw new OctavoError("invalid_option", message, { cause: error });
  }
}

type Texts = readonly Int32Array[];
type Encode = (texts: Texts) => Promise<readonly Float32Array[]>;

function randomTexts(lengths: readonly number[]): Texts {
  let state = 7;
  return lengths.map((length) =>
    Int32Array.from({ length }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state % bertShape.vocab;
    }),
  );
}

function onnxEncoder(runtime: OnnxRuntime, session: OnnxSession): Encode {
  return async (texts) => {
    const longest = Math.max(...texts.map(({ length }) => length));
    const dims = [texts.length, longest];
    const ids = new BigInt64Array(texts.length * longest);
    const positions = BigInt64Array.from(ids, (_, index) => BigInt(index % longest));
    for (const [row, tokens] of texts.entries())
      tokens.forEach((id, at) => (ids[row * longest + at] = BigInt(id)));
    const outputs = await session.run({
      ids: new runtime.Tensor("int64", ids, dims),
      positions: new runtime.Tensor("int64", positions, dims),
      lengths: new runtime.Tensor(
        "int32",
        Int32Array.from(texts, ({ length }) => length),
        [texts.length],
      ),
    });
    const { data } = outputs[`x${bertShape.layers}`] ?? { data: new Float32Array() };
    const { hidden } = bertShape;
    return texts.map((_, row) => data.slice(row * longest * hidden, row * longest * hidden + hidden));
  };
}

/** 1 - cosine. */
function distance(a: Float32Array, b: Float32Array): number {
  const dot = a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  return 1 - dot / (Math.hypot(...a) * Math.hypot(...b));
}

/** The largest distance of vectors from those at the same places. */
const farthestOf = (vectors: readonly Float32Array[], from: readonly Float32Array[]): number =>
  Math.max(...vectors.map((vector, index) => distance(vector, from[index] ?? new Float32Array())));

const shapes: readonly (readonly [name: string, lengths: readonly number[]])[] = [
  ["1 text of 128 tokens", [128]],
  ["16 texts of 128 tokens", Array.from({ length: 16 }, () => 128)],
  ["32 texts of 8 to 256 tokens", Array.from({ length: 32 }, (_, index) => 8 + ((index * 37) % 32) * 8)],
];
/** Products in int8 round activations differently: theirs to 8 bits for a whole step, ours 128 columns of a row at a time. */
const farthest = { f32: 1e-6, int8: 2e-2 } as const;

const runtime = findOnnxRuntime();
const scratch = mkdtempSync(join(tmpdir(), "octavo-bench-encoders-"));
const weights = randomBert();
const cases: BenchCase[] = [];
/** Ours in f32, by shape: what both are held to in int8. */
const unrounded = new Map<string, readonly Float32Array[]>();
try {
  for (const type of ["f32", "int8"] as const) {
    const folder = join(scratch, type);
    writeFolder(folder, weights, type);
    const file = join(scratch, `${type}.onnx`);
    writeFileSync(file, onnxBert(weights, type));
    const options = { intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: "all" };
    const theirs = onnxEncoder(runtime, await runtime.InferenceSession.create(file, options));
    await using llm = await LLM.load(folder, { numThreads: threads, maxNumBatchedTokens: 8_192 });
    const ours: Encode = (texts) => llm.embed(texts, { pooling: "cls", normalize: false });
    for (const [name, lengths] of shapes) {
      const texts = randomTexts(lengths);
      const [expected, actual] = [await theirs(texts), await ours(texts)];
      const most = farthestOf(actual, expected);
      if (!(most <= farthest[type]))
        throw new OctavoError("internal_error", `${type}, ${name}: vectors are ${most} apart`);
      if (type === "f32") unrounded.set(name, actual);
      const lost = (vectors: readonly Float32Array[]): number =>
        farthestOf(vectors, unrounded.get(name) ?? []);
      const losses = type === "int8" && { fromF32: lost(actual), onnxRuntimeFromF32: lost(expected) };
      const seconds = { ours: [] as number[], theirs: [] as number[] };
      const processorTime = { ours: [] as number[], theirs: [] as number[] };
      const time = async (who: keyof typeof seconds, encode: Encode): Promise<void> => {
        const start = performance.now();
        const before = process.cpuUsage();
        await encode(texts);
        const { user, system } = process.cpuUsage(before);
        seconds[who].push((performance.now() - start) / 1000);
        processorTime[who].push((user + system) / 1e6);
      };
      for (let round = 0; round < Number(values.rounds); round++) {
        const turns = [() => time("ours", ours), () => time("theirs", theirs)];
        for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
      }
      const tokens = lengths.reduce((sum, length) => sum + length);
      const ratiosOf = ({ ours: own, theirs: other }: typeof seconds): number[] =>
        own.map((value, round) => (other[round] ?? Number.NaN) / value);
      cases.push({
        name: `${type}, ${name}: times ONNX Runtime's speed`,
        unit: "x",
        octavo: median(ratiosOf(seconds)),
        target: { atLeast: 2 },
        details: {
          tokensPerSecond: Math.round(tokens / median(seconds.ours)),
          onnxRuntimeTokensPerSecond: Math.round(tokens / median(seconds.theirs)),
          farthestCosine: most,
          ...losses,
          // What other work on the machine disturbs least; threads that wait for each other are among it.
          processorTimeRatio: median(ratiosOf(processorTime)),
          threads,
        },
      });
    }
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
report("encoders", cases);
