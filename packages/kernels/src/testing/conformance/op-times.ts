import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, Op, OpTime, Program } from "../../backend.js";
import { assertSameBits, matrix, promptPlan, smallestCache, vector } from "../op-harness.js";
import { SeededRandom } from "../seeded-random.js";

const width = 32;
const vocab = 48;

/** What each kind of op took, in one vocabulary for all backends, and the same rows as without. */
export function opTimesConformance(open: () => Backend): void {
  describe("times of ops", () => {
    test("are told by kind for plans that want them, and the rows are the same bits", async (t) => {
      using backend = open();
      if (backend.timesOps !== true) return t.skip("this backend does not time ops");
      using program = await programOf(backend, [
        { op: "clamp", on: { buffer: 0 }, limit: 0.5 },
        { op: "clamp", on: { buffer: 0 }, limit: 0.25 },
      ]);
      const plain = await logitsOf(backend, program, false);
      assert.equal(plain.opTimes, undefined);
      for (let step = 0; step < 2; step++) {
        const { logits, opTimes = [] } = await logitsOf(backend, program, true);
        assertSameBits(logits, plain.logits, "logits");
        const counts = Object.fromEntries(opTimes.map(({ op, count }) => [op, count]));
        // A GPU may take several dispatches.
        const { gather = 0, head = 0, ...others } = counts;
        assert.deepEqual(others, { embedding: 1, clamp: 2, rms_norm: 1, linear: 1 });
        assert.ok(gather >= 1 && head >= 1, JSON.stringify(counts));
        assert.ok(opTimes.every(({ milliseconds }) => Number.isFinite(milliseconds) && milliseconds >= 0));
        assert.ok(opTimes.some(({ milliseconds }) => milliseconds > 0));
      }
    });
  });
}

async function programOf(backend: Backend, ops: readonly Op[]): Promise<Program> {
  const random = new SeededRandom(5);
  const weights = (rows: number): Promise<Awaited<ReturnType<typeof matrix>>> =>
    matrix(backend, rows, width, random.floats(rows * width));
  return backend.compile({
    buffers: [width, width],
    ops: [
      { op: "embedding", weight: await weights(vocab), out: { buffer: 0 } },
      ...ops,
      {
        op: "rms_norm",
        in: { buffer: 0 },
        weight: vector(backend, random.floats(width)),
        out: { buffer: 1 },
        eps: 1e-5,
      },
      { op: "linear", in: { buffer: 1 }, weight: await weights(width), out: { buffer: 0 } },
      { op: "gather", in: { buffer: 0 }, out: { buffer: 0 } },
    ],
    hidden: { buffer: 0 },
    head: { weight: await weights(vocab) },
    maxTokens: 3,
  });
}

async function logitsOf(
  backend: Backend,
  program: Program,
  wantOpTimes: boolean,
): Promise<{ readonly logits: Float32Array | undefined; readonly opTimes: readonly OpTime[] | undefined }> {
  using cache = backend.createKvCache(smallestCache);
  const plan = promptPlan([3, 1, 47], [{ kind: "score", target: 2, numLogprobs: 0 }]);
  const outputTokens = Int32Array.of(2);
  const wanted = { wantLogits: true, ...(wantOpTimes && { wantOpTimes }) };
  const { rows, opTimes } = await backend.execute(program, cache, { ...plan, outputTokens, ...wanted });
  return { logits: rows[0]?.logits, opTimes };
}
