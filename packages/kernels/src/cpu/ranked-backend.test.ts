import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, test } from "node:test";
import { createCpuBackend } from "../index.js";
import { createRankedBackend } from "./ranked-backend.js";
import { rankCores } from "../machine/rank-cores.js";
import { rankPart } from "../ranks.js";
import { backendConformance } from "../testing/backend-conformance.js";
import { rankedSteps, sharedRows } from "../testing/ranked-steps.js";

// What is not made in parts runs on the first rank.
backendConformance(
  "first of two ranks",
  (numThreads) => createRankedBackend({ numRanks: 2, numThreads: 2 * numThreads }),
  { hasFewSteps: true, numDraws: 2000 },
);

test("parts are neighbours, and together all", () => {
  for (const [total, count] of [
    [8, 2],
    [7, 2],
    [50_257, 3],
    [5, 5],
  ] as const) {
    let next = 0;
    for (let rank = 0; rank < count; rank++) {
      const { first, width } = rankPart(total, count, rank);
      assert.equal(first, next);
      next += width;
    }
    assert.equal(next, total);
  }
});

test("ranks keep to their memory node, and to no processor where there are too few", () => {
  const files: Record<string, string> = {
    "/proc/self/status": "Cpus_allowed_list:\t0-7\n",
    "/sys/devices/system/node/online": "0-1\n",
    "/sys/devices/system/node/node0/cpulist": "0,2,4,6\n",
    "/sys/devices/system/node/node1/cpulist": "1,3,5,7\n",
  };
  const read = (path: string): string | undefined => files[path];
  assert.deepEqual(rankCores(2, 4, read), [
    [0, 2, 4, 6],
    [1, 3, 5, 7],
  ]);
  assert.deepEqual(rankCores(4, 1, read), [
    [0, 2],
    [4, 6],
    [1, 3],
    [5, 7],
  ]);
  assert.deepEqual(rankCores(2, 5, read), [[], []]);
  assert.deepEqual(
    rankCores(2, 1, () => undefined),
    [[], []],
  );
});

describe("misuse", () => {
  test("ranks have a thread each", () => {
    for (const numRanks of [0, 1.5, 3]) {
      assert.throws(() => createRankedBackend({ numRanks, numThreads: 2 }), {
        code: "invalid_option",
        param: "tensor_parallel_size",
      });
    }
    assert.throws(() => createRankedBackend({ numRanks: 2, numThreads: 0 }), { param: "numThreads" });
  });

  test("a part is no program, and a program of other parts is refused", async () => {
    using alone = createCpuBackend({ numThreads: 1 });
    using ranks = createRankedBackend({ numRanks: 2, numThreads: 2 });
    const spec = await sharedRows(alone, 0);
    assert.throws(() => alone.compile(spec), { code: "internal_error", message: /is a part/ });
    assert.throws(() => ranks.compileRanks?.([spec]), {
      code: "internal_error",
      message: /1 parts .* 2 ranks/,
    });
  });
});

test("a process ends while ranks compute", () => {
  const entry = JSON.stringify(new URL("./ranked-backend.js", import.meta.url).href);
  const harness = JSON.stringify(new URL("../testing/ranked-steps.js", import.meta.url).href);
  for (const end of ["process.exit(0);", "await steps[0]; process.exit(0);", "backend[Symbol.dispose]();"]) {
    const program = `
      const { createRankedBackend } = await import(${entry});
      const { rankedSteps } = await import(${harness});
      const backend = createRankedBackend({ numRanks: 2, numThreads: 2 });
      const steps = await rankedSteps(backend, 40);
      for (const step of steps) step.catch(() => {});
      ${end}`;
    const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
      timeout: 120_000,
    });
    assert.equal(status, 0, stderr);
  }
});

test("a rank gets the columns of the other, and what it got is counted", async () => {
  using backend = createRankedBackend({ numRanks: 2, numThreads: 2 });
  const [result] = await Promise.all(await rankedSteps(backend, 3));
  const hidden = result?.rows[0]?.hidden ?? new Float32Array();
  assert.deepEqual(
    [...hidden],
    Array.from({ length: 32 }, (_, column) => (column < 16 ? 0 : 1)),
  );
  assert.equal(result?.exchanges?.length, 2);
  for (const { bytes, milliseconds } of result?.exchanges ?? []) {
    assert.equal(bytes, 200 * 64 * 16 * 4);
    assert.ok(milliseconds > 0);
  }
});
