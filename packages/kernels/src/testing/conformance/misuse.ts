import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type {
  Backend,
  KvCache,
  MatrixSource,
  Op,
  Program,
  ProgramSpec,
  StepPlan,
  Vector,
} from "../../backend.js";
import { greedy, samplerState } from "../logit-harness.js";
import { floatBytes, matrix, promptPlan, vector } from "../op-harness.js";

/** What is wrong is refused with a message that says what and where, before anything runs. */
export function misuseConformance(open: () => Backend): void {
  describe("misuse", () => {
    const floats = (length: number): ReturnType<typeof floatBytes> => floatBytes(new Float32Array(length));
    const good = { type: "f32", rows: 2, cols: 32, bytes: floats(64), name: "w" } as const;

    const sources: readonly (readonly [string, readonly MatrixSource[], RegExp])[] = [
      ["no source", [], /at least one source/],
      ["too few bytes", [{ ...good, rows: 3 }], /Tensor w: its values take 384 bytes by its shape, but 256/],
      ["no rows", [{ ...good, rows: 0 }], /rows must be an integer from 1/],
      [
        "sources of different widths",
        [good, { ...good, name: "v", rows: 1, cols: 64 }],
        /Tensor v: .*cannot be stacked under w/,
      ],
      [
        "sources of different types",
        [good, { ...good, name: "v", type: "bf16", bytes: floats(32) }],
        /must agree/,
      ],
      ["columns that blocks do not divide", [{ ...good, type: "q4_k", cols: 128 }], /256 columns at a time/],
      [
        "int8 without scales",
        [{ ...good, type: "int8", bytes: floats(16), groupSize: 32 }],
        /int8 needs scales/,
      ],
      [
        "a group of 48",
        [{ ...good, type: "int8", bytes: floats(16), groupSize: 48, scales: floats(2) }],
        /multiple of 32/,
      ],
      [
        "a column order that names a column twice",
        [
          {
            ...good,
            type: "int8",
            bytes: { data: new Uint8Array(64) },
            groupSize: 32,
            scales: floats(2),
            columnOrder: new Int32Array(32),
          },
        ],
        /no permutation: 0 is out of range or stands twice/,
      ],
      [
        "scales of another size",
        [{ ...good, type: "int8", bytes: floats(16), groupSize: 32, scales: floats(3) }],
        /its scales take 8 bytes/,
      ],
      [
        "a value that is NaN",
        [{ ...good, bytes: floatBytes(new Float32Array(64).fill(Number.NaN, 40, 41)) }],
        /\bw\b/,
      ],
      [
        "a value that is infinite",
        [{ ...good, bytes: floatBytes(new Float32Array(64).fill(-Infinity, 63)) }],
        /\bw\b/,
      ],
    ];
    for (const [name, list, message] of sources) {
      test(`a matrix of ${name}`, async () => {
        using backend = open();
        await assert.rejects(backend.createMatrix(list), (error) => {
          assert.ok(error instanceof OctavoError);
          assert.match(error.code, /^(artifact_invalid|internal_error)$/);
          assert.match(error.message, message);
          return true;
        });
      });
    }

    test("vectors: sizes, types, values", () => {
      using backend = open();
      const vectorOf =
        (change: object): (() => Vector) =>
        () =>
          backend.createVector([{ type: "f32", length: 4, bytes: floats(4), name: "n", ...change }]);
      assert.throws(vectorOf({ length: 5 }), { code: "artifact_invalid", message: /Tensor n: .*20 bytes/ });
      assert.throws(vectorOf({ type: "q8_0" }), { code: "artifact_unsupported" });
      assert.throws(vectorOf({ bytes: floatBytes([1, 2, Number.NaN, 4]) }), {
        code: "artifact_invalid",
        message: /tensor n .*index 2/,
      });
    });

    test("a file that is not there", () => {
      using backend = open();
      assert.throws(() => backend.mapFile("/nonexistent/model.safetensors"), { code: "artifact_not_found" });
      assert.throws(() => backend.mapFile("/"), { code: "artifact_invalid" });
    });

    test("a KV cache of impossible shape", () => {
      using backend = open();
      const spec = {
        layers: [{ numKvHeads: 1, headDim: 8 }],
        numBlocks: 4,
        blockSize: 16,
        dtype: "f32",
      } as const;
      for (const change of [
        { numBlocks: 0 },
        { blockSize: 0 },
        { layers: [] },
        {
          layers: [
            { numKvHeads: 1, headDim: 8 },
            { numKvHeads: 1, headDim: 13 },
          ],
        },
        { layers: [{ numKvHeads: 1.5, headDim: 8 }] },
        { numBlocks: 2 ** 31 - 1 },
        { dtype: "q8" },
      ]) {
        assert.throws(
          () => backend.createKvCache(Object.assign({}, spec, change)),
          { code: "invalid_request" },
          JSON.stringify(change),
        );
      }
      const layers = Array.from({ length: 60000 }, () => ({ numKvHeads: 64, headDim: 8 }));
      const vast = { ...spec, layers, numBlocks: 2 ** 26 };
      assert.throws(() => backend.createKvCache(vast), { code: "out_of_memory" });
    });

    test("sampler states", () => {
      using backend = open();
      for (const spec of [
        { repetitionPenalty: 0 },
        { repetitionPenalty: Number.NaN },
        { frequencyPenalty: Infinity },
        { presencePenalty: Number.NaN },
        { logitBias: { ids: Int32Array.of(1, 2), values: Float32Array.of(1) } },
        { logitBias: { ids: Int32Array.of(1), values: Float32Array.of(Number.NaN) } },
      ]) {
        assert.throws(() => samplerState(backend, spec), { code: "invalid_request" }, JSON.stringify(spec));
      }
    });

    test("plans that do not hold together", async () => {
      using backend = open();
      const { program, cache } = await smallModel(backend);
      const state = samplerState(backend, {});
      const sample = { kind: "sample", sampling: greedy, numLogprobs: undefined } as const;
      const withState = { ...sample, sampling: { ...greedy, state } };
      const bad: readonly (readonly [RegExp, Partial<StepPlan>])[] = [
        [/numTokens/, { numTokens: 0 }],
        [/numTokens.*1 to 32/, { numTokens: 33 }],
        [/numSequences/, { numSequences: 0 }],
        [/tokenIds has 3 elements/, { tokenIds: new Int32Array(3) }],
        [/tokenIds\[2\] is 10/, { tokenIds: Int32Array.of(0, 1, 10, 3) }],
        [/tokenIds\[0\] is -1/, { tokenIds: Int32Array.of(-1, 1, 1, 3) }],
        [/positions\[1\]/, { positions: Int32Array.of(0, -1, 2, 3) }],
        [/queryStarts must run/, { queryStarts: Int32Array.of(0, 3) }],
        [/context length of 3/, { contextLengths: Int32Array.of(3) }],
        [/1 blocks of 16 for a context of 40/, { contextLengths: Int32Array.of(40) }],
        [/blockTables\[0\] is 4/, { blockTables: Int32Array.of(4) }],
        [/blockTables\[0\] is -1/, { blockTables: Int32Array.of(-1) }],
        [/blockTables, which has 1/, { blockTableStarts: Int32Array.of(0, 2) }],
        [/slots\[3\] is 17.*slot 3/, { slots: Int32Array.of(0, 1, 2, 17) }],
        [/outputTokens\[1\] is 0/, { outputTokens: Int32Array.of(2, 0), outputs: [sample, sample] }],
        [/outputTokens\[0\] is 4/, { outputTokens: Int32Array.of(4), outputs: [sample] }],
        [/outputTokens has 0/, { outputTokens: new Int32Array(0), outputs: [sample] }],
        [
          /outputs\[1\] shares its sampler state/,
          { outputTokens: Int32Array.of(0, 1), outputs: [withState, withState] },
        ],
        [/outputs\[0\] follows a draft token/, { outputs: [{ ...sample, afterDraft: true }] }],
        [
          /outputs\[1\] follows a draft token/,
          { outputTokens: Int32Array.of(0, 2), outputs: [sample, { ...sample, afterDraft: true }] },
        ],
        [
          /outputs\[1\] follows a draft token/,
          {
            outputTokens: Int32Array.of(0, 1),
            outputs: [{ kind: "hidden" }, { ...sample, afterDraft: true }],
          },
        ],
        [/outputs\[0\]\.target/, { outputs: [{ kind: "score", target: 10, numLogprobs: 0 }] }],
        [/outputs\[0\]\.numLogprobs/, { outputs: [{ ...sample, numLogprobs: -1 }] }],
        [/logprobIds/, { outputs: [{ ...sample, logprobIds: Int32Array.of(10) }] }],
        [/temperature/, { outputs: [{ ...sample, sampling: { ...greedy, temperature: Number.NaN } }] }],
        [/temperature/, { outputs: [{ ...sample, sampling: { ...greedy, temperature: -1 } }] }],
        [/topP/, { outputs: [{ ...sample, sampling: { ...greedy, topP: 1.1 } }] }],
        [/topK/, { outputs: [{ ...sample, sampling: { ...greedy, topK: 1.5 } }] }],
        [/minP/, { outputs: [{ ...sample, sampling: { ...greedy, minP: -0.1 } }] }],
        [/mask has 3 words/, { outputs: [{ ...sample, sampling: { ...greedy, mask: new Uint32Array(3) } }] }],
        [/index/, { outputs: [{ ...sample, sampling: { ...greedy, index: -1 } }] }],
      ];
      const plan = promptPlan([0, 1, 2, 3], [sample]);
      for (const [message, change] of bad) {
        await assert.rejects(backend.execute(program, cache, { ...plan, ...change }), {
          code: "invalid_request",
          message,
        });
      }
      using otherCache = backend.createKvCache({
        layers: [{ numKvHeads: 2, headDim: 8 }],
        numBlocks: 4,
        blockSize: 16,
        dtype: "f32",
      });
      await assert.rejects(backend.execute(program, otherCache, plan), {
        code: "invalid_request",
        message: /program needs 1 kv heads of 8 in layer 0 of the KV cache, which has 2 kv heads of 8/,
      });
      assert.equal((await backend.execute(program, cache, plan)).rows.length, 1, "the backend still works");
    });

    test("programs that do not fit together", async () => {
      using backend = open();
      const { spec } = await smallModel(backend);
      const replaced = (index: number, change: object): ProgramSpec => ({
        ...spec,
        ops: spec.ops.map((op, i) => (i === index ? Object.assign({}, op, change) : op)),
      });
      const inserted = (index: number, ...ops: Op[]): ProgramSpec => ({
        ...spec,
        ops: spec.ops.toSpliced(index, 0, ...ops),
      });
      const scale = { op: "scale", on: { buffer: 1 }, factor: 1 } as const;
      const bad: readonly (readonly [RegExp, ProgramSpec])[] = [
        [
          /op 0 \(embedding\).*width of out is 16, the weight's columns are 24/,
          replaced(0, { out: { buffer: 0, width: 16 } }),
        ],
        [/op 0 .*buffer 9 .*does not exist/, replaced(0, { out: { buffer: 9 } })],
        [/columns 20 to 28 of buffer 0/, replaced(1, { q: { buffer: 0, column: 20, width: 8 } })],
        [/width of q is 8/, replaced(1, { numHeads: 2 })],
        [/2 heads over 3 kv heads/, replaced(1, { numHeads: 2, numKvHeads: 3 })],
        [/must be even/, replaced(1, { headDim: 7 })],
        [/takes undefined of 8 columns of a key/, replaced(1, { v: undefined })],
        [/values without keys/, replaced(1, { k: undefined })],
        [/layer 0 of the KV cache, which no op before/, replaced(1, { k: undefined, v: undefined })],
        [/slidingWindow/, replaced(1, { slidingWindow: 0 })],
        [/a chunk beside a window/, replaced(1, { chunk: 4, slidingWindow: 4 })],
        [/softCap/, replaced(1, { softCap: -1 })],
        [/op 0 \(scale\) reads buffer 1 .*nothing has written/, inserted(0, scale)],
        [
          /width of in is 8, the weight's columns are 24/,
          inserted(2, {
            op: "linear",
            in: { buffer: 1 },
            weight: await matrix(backend, 8, 24, new Float32Array(192)),
            out: { buffer: 1 },
          }),
        ],
        [
          /in and out apart/,
          inserted(2, {
            op: "linear",
            in: { buffer: 1 },
            weight: await matrix(backend, 8, 8, new Float32Array(64)),
            out: { buffer: 1 },
          }),
        ],
        [
          /weight is 3, the normalised columns are 8/,
          inserted(2, {
            op: "rms_norm",
            in: { buffer: 1 },
            out: { buffer: 1 },
            weight: vector(backend, [1, 2, 3]),
            eps: 1e-5,
          }),
        ],
        [
          /rotates 5 pairs of heads of 8/,
          inserted(2, {
            op: "rope",
            on: { buffer: 1 },
            headDim: 8,
            rope: { inverseFrequencies: new Float32Array(5), attentionFactor: 1, layout: "neox" },
          }),
        ],
        [
          /holds the rows before gather/,
          inserted(3, { op: "add", in: { buffer: 0, width: 8 }, out: { buffer: 2 } }),
        ],
        [
          /comes after gather/,
          inserted(3, {
            op: "rope",
            on: { buffer: 2 },
            headDim: 8,
            rope: { inverseFrequencies: new Float32Array(4), attentionFactor: 1, layout: "neox" },
          }),
        ],
        [/the head .*width of hidden is 24/, { ...spec, hidden: { buffer: 0 }, ops: spec.ops.slice(0, 2) }],
        [/maxTokens/, { ...spec, maxTokens: 0 }],
        [/width of buffer 1/, { ...spec, buffers: [24, 0, 8] }],
      ];
      for (const [message, program] of bad) {
        assert.throws(() => backend.compile(program), { code: "internal_error", message });
      }
    });

    test("handles that were disposed, or made by another backend", async () => {
      using backend = open();
      using other = open();
      const { spec, program, cache } = await smallModel(backend);
      const plan = promptPlan([0], []);
      const disposed = await matrix(backend, 10, 8, new Float32Array(80));
      disposed[Symbol.dispose]();
      disposed[Symbol.dispose]();
      assert.throws(() => backend.compile({ ...spec, head: { weight: disposed } }), {
        code: "internal_error",
        message: /matrix has been disposed/,
      });
      assert.throws(() => other.compile(spec), { code: "internal_error", message: /another backend/ });
      await assert.rejects(other.execute(program, cache, plan), {
        code: "internal_error",
        message: /another backend/,
      });
      const state = samplerState(backend, {});
      state[Symbol.dispose]();
      const outputs = [{ kind: "sample", sampling: { ...greedy, state }, numLogprobs: undefined }] as const;
      await assert.rejects(backend.execute(program, cache, promptPlan([0], outputs)), {
        message: /sampler state has been disposed/,
      });
      cache[Symbol.dispose]();
      await assert.rejects(backend.execute(program, cache, plan), { message: /KV cache has been disposed/ });
      program[Symbol.dispose]();
      await assert.rejects(backend.execute(program, cache, plan), { message: /program has been disposed/ });
      backend[Symbol.dispose]();
      assert.throws(() => backend.compile(spec), { message: /backend has been disposed/ });
      await assert.rejects(matrix(backend, 1, 1, [1]), { message: /backend has been disposed/ });
    });

    test("what a step uses may be disposed while it runs", async () => {
      using backend = open();
      const { program, cache, spec } = await smallModel(backend);
      const outputs = [
        { kind: "sample", sampling: { ...greedy, state: samplerState(backend, {}) }, numLogprobs: 1 },
      ] as const;
      const steps = Array.from({ length: 8 }, () =>
        backend.execute(program, cache, promptPlan([0, 1, 2], outputs)),
      );
      for (const handle of [program, cache, spec.head!.weight, outputs[0].sampling.state])
        handle[Symbol.dispose]();
      backend[Symbol.dispose]();
      const results = await Promise.all(steps);
      for (const { rows } of results) assert.deepEqual(rows, results[0]?.rows);
    });
  });
}

/** Ten tokens, one attention head of 8 over q, k, v taken from the embedding as they are. */
async function smallModel(
  backend: Backend,
): Promise<{ spec: ProgramSpec; program: Program; cache: KvCache }> {
  const values = Float32Array.from({ length: 240 }, (_, i) => Math.sin(i));
  const spec: ProgramSpec = {
    buffers: [24, 8, 8],
    ops: [
      { op: "embedding", weight: await matrix(backend, 10, 24, values), out: { buffer: 0 } },
      {
        op: "attention",
        q: { buffer: 0, column: 0, width: 8 },
        k: { buffer: 0, column: 8, width: 8 },
        v: { buffer: 0, column: 16, width: 8 },
        out: { buffer: 1 },
        layer: 0,
        numHeads: 1,
        numKvHeads: 1,
        headDim: 8,
        scale: 1,
      },
      { op: "gather", in: { buffer: 1 }, out: { buffer: 2 } },
    ],
    hidden: { buffer: 2 },
    head: { weight: await matrix(backend, 10, 8, values.subarray(0, 80)) },
    maxTokens: 32,
  };
  const cache = backend.createKvCache({
    layers: [{ numKvHeads: 1, headDim: 8 }],
    numBlocks: 4,
    blockSize: 16,
    dtype: "f32",
  });
  return { spec, program: backend.compile(spec), cache };
}
