import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import { createCpuBackend, type Matrix } from "../index.js";
import { greedy, LogitModel } from "../testing/logit-harness.js";
import { matrix } from "../testing/op-harness.js";
import { checkInterface, loadAddon } from "./load-addon.js";

const packageEntry = new URL("../index.js", import.meta.url).href;
const harness = new URL("../testing/logit-harness.js", import.meta.url).href;

/** A program that starts many steps; `end` says how it stops while they run. */
function script(end: string): string {
  return `
    const { createCpuBackend } = await import(${JSON.stringify(packageEntry)});
    const { greedy, LogitModel } = await import(${JSON.stringify(harness)});
    const backend = createCpuBackend({ numThreads: 2 });
    const model = await LogitModel.create(backend, Array.from({ length: 64 }, () => new Float32Array(512)), 64);
    const tokens = Array.from({ length: 64 }, (_, i) => i);
    const outputs = tokens.map(() => ({ kind: "sample", sampling: { ...greedy, temperature: 1 }, numLogprobs: 512 }));
    const steps = Array.from({ length: 50 }, () => model.run(tokens, outputs));
    ${end}`;
}

describe("life of the CPU backend", () => {
  test("says what it computes with", () => {
    using backend = createCpuBackend({ numThreads: 3 });
    assert.equal(backend.info.name, "cpu");
    assert.equal(backend.info.numThreads, 3);
    assert.match(backend.info.instructionSet, /^(avx512|avx2|neon|scalar)$/);
  });

  test("thread counts", () => {
    for (const numThreads of [0, -1, 1.5, Number.NaN, 5000]) {
      assert.throws(() => createCpuBackend({ numThreads }), { code: "invalid_option", param: "numThreads" });
    }
  });

  test("missing or broken kernels are native_unavailable", () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-kernels-"));
    try {
      const path = join(folder, "kernels.node");
      assert.throws(() => loadAddon(path), { code: "native_unavailable", message: /npm run setup/ });
      writeFileSync(path, "not a shared object");
      assert.throws(() => loadAddon(path), { code: "native_unavailable", message: /do not load/ });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("kernels of other sources are refused before anything is called", () => {
    const path = "/somewhere/kernels.node";
    const current = loadAddon();
    assert.equal(checkInterface(current, path), current);
    for (const interfaceVersion of [undefined, current.interfaceVersion + 1, current.interfaceVersion - 1]) {
      const { interfaceVersion: _own, ...rest } = current;
      const other = interfaceVersion === undefined ? rest : { ...rest, interfaceVersion };
      assert.throws(() => checkInterface(other, path), {
        code: "native_unavailable",
        message: /kernels\.node were built from other sources .*npm run setup/,
      });
    }
  });

  test("bf16 weights may stay in their file, which they keep mapped", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-kernels-"));
    try {
      const path = join(folder, "weights.bin");
      const values = new Uint16Array(40 * 256).fill(0x3f80);
      const shape = { type: "bf16", rows: 40, cols: 256, name: "model.w" } as const;
      const byteLength = values.byteLength;
      using backend = createCpuBackend({ numThreads: 2 });
      const packedBytes = (of: Matrix): Uint8Array | undefined => backend.packedWeights?.bytesOf(of);
      writeFileSync(path, values);
      {
        using file = backend.mapFile(path);
        const source = { ...shape, bytes: { file, offset: 0, byteLength } };
        using packed = await backend.createMatrix([source]);
        using either = await backend.createMatrix([source], { inPlace: true });
        assert.ok((packedBytes(packed)?.byteLength ?? 0) >= byteLength);
        assert.equal(packedBytes(either) === undefined, backend.info.instructionSet === "avx512");
        assert.ok(either.byteLength >= byteLength);
      }
      values[39 * 256 + 7] = 0x7fc0;
      writeFileSync(path, values);
      using file = backend.mapFile(path);
      const source = { ...shape, bytes: { file, offset: 0, byteLength } };
      await assert.rejects(backend.createMatrix([source], { inPlace: true }), {
        code: "artifact_invalid",
        message: /model\.w.*row 39/,
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("weights of a mapped file may be packed later, when they were checked", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-kernels-"));
    try {
      const path = join(folder, "weights.bin");
      const rowBytes = (256 / 32) * 34;
      const blocks = new Uint8Array(40 * rowBytes).fill(0x22);
      const shape = { type: "q8_0", rows: 40, cols: 256, name: "model.w" } as const;
      const byteLength = blocks.byteLength;
      using backend = createCpuBackend({ numThreads: 2 });
      const packMore = (matrices: readonly Matrix[], milliseconds: number): Promise<number> =>
        backend.packMore?.(matrices, milliseconds) ?? assert.fail("this backend packs nothing later");
      const packedBytes = (of: Matrix): Uint8Array | undefined => backend.packedWeights?.bytesOf(of);
      writeFileSync(path, blocks);
      const file = backend.mapFile(path);
      const source = { ...shape, bytes: { file, offset: 0, byteLength } };
      using packed = await backend.createMatrix([source]);
      using later = await backend.createMatrix([source], { packLater: true });
      using other = await backend.createMatrix([source], { packLater: true });
      file[Symbol.dispose]();
      assert.equal(later.byteLength, packed.byteLength);
      assert.equal(packedBytes(later), undefined);
      assert.equal(await packMore([packed], 0), 1);
      assert.equal(await packMore([], 0), 0);
      assert.equal(packedBytes(later), undefined);
      assert.equal(await packMore([packed, later], 10_000), 2);
      assert.deepEqual(packedBytes(later), packedBytes(packed));
      assert.equal(packedBytes(other), undefined);
      for (const milliseconds of [-1, Number.NaN]) {
        await assert.rejects(packMore([other], milliseconds), { message: /takes a time/ });
      }
      using stranger = createCpuBackend({ numThreads: 1 });
      await assert.rejects(stranger.packMore?.([other], 0) ?? assert.fail(), { message: /another backend/ });
      other[Symbol.dispose]();
      await assert.rejects(packMore([other], 0), { message: /matrix has been disposed/ });

      blocks.set([0x00, 0x7c], 39 * rowBytes + 34);
      writeFileSync(path, blocks);
      using spoiled = backend.mapFile(path);
      const bad = { ...shape, bytes: { file: spoiled, offset: 0, byteLength } };
      await assert.rejects(backend.createMatrix([bad], { packLater: true }), {
        code: "artifact_invalid",
        message: /model\.w.*row 39/,
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("weights come from ranges of a mapped file, checked against its length", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-kernels-"));
    try {
      const path = join(folder, "weights.bin");
      const values = Float32Array.from({ length: 30 }, (_, i) => i);
      writeFileSync(path, new Uint8Array(values.buffer));
      using backend = createCpuBackend({ numThreads: 1 });
      using file = backend.mapFile(path);
      assert.equal(file.byteLength, 120);
      const source = { type: "f32", rows: 4, cols: 5, name: "w" } as const;
      using whole = await backend.createMatrix([{ ...source, bytes: { file, offset: 40, byteLength: 80 } }]);
      assert.deepEqual([whole.rows, whole.cols], [4, 5]);
      assert.ok(whole.byteLength >= 80);
      await assert.rejects(
        backend.createMatrix([{ ...source, bytes: { file, offset: 44, byteLength: 80 } }]),
        {
          code: "artifact_invalid",
          message: /bytes 44 to 124 of .*weights\.bin, which has 120/,
        },
      );
      await assert.rejects(
        backend.createMatrix([{ ...source, bytes: { file, offset: -4, byteLength: 80 } }]),
        {
          code: "artifact_invalid",
        },
      );
      file[Symbol.dispose]();
      await assert.rejects(
        backend.createMatrix([{ ...source, bytes: { file, offset: 0, byteLength: 80 } }]),
        {
          message: /mapped file has been disposed/,
        },
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("steps settle in call order, while the event loop turns", async () => {
    using backend = createCpuBackend({ numThreads: 2 });
    using model = await LogitModel.create(backend, [new Float32Array(1500)], 64);
    const tokens = Array.from({ length: 64 }, () => 0);
    const outputs = tokens.map(() => ({ kind: "sample", sampling: greedy, numLogprobs: undefined }) as const);
    const settled: number[] = [];
    let turns = 0;
    const turn = setInterval(() => (turns += 1), 0);
    await Promise.all(
      Array.from({ length: 40 }, async (_, index) => {
        const { computeMs } = await model.run(tokens, outputs);
        assert.ok(computeMs > 0);
        settled.push(index);
      }),
    );
    clearInterval(turn);
    assert.deepEqual(
      settled,
      settled.toSorted((a, b) => a - b),
    );
    assert.ok(turns > 0, "no timer fired between the first call and the last result");
  });

  test("several backends work side by side", async () => {
    using first = createCpuBackend({ numThreads: 1 });
    using second = createCpuBackend({ numThreads: 2 });
    const models = await Promise.all(
      [first, second].map((backend) => LogitModel.create(backend, [[1, 3, 2]], 1)),
    );
    assert.deepEqual(await Promise.all(models.map((model) => model.sample(0, greedy))), [1, 1]);
  });

  test("a matrix in the making survives the disposal of its backend", async () => {
    const backend = createCpuBackend({ numThreads: 2 });
    const making = matrix(backend, 256, 256, new Float32Array(65536));
    backend[Symbol.dispose]();
    assert.equal((await making).rows, 256);
  });

  test("a disposed backend gives its threads back", { skip: !existsSync("/proc/self/task") }, async () => {
    const numTasks = (): number => readdirSync("/proc/self/task").length;
    const before = numTasks();
    for (let round = 0; round < 5; round++) createCpuBackend({ numThreads: 3 })[Symbol.dispose]();
    for (let turn = 0; turn < 2000 && numTasks() > before; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.ok(numTasks() <= before, `${numTasks() - before} threads are left`);
  });

  for (const [name, end] of [
    ["leaves with process.exit", "process.exit(0);"],
    ["waits for what is pending and then ends", "Promise.all(steps).then(() => {});"],
    ["ends when all is disposed", "backend[Symbol.dispose]();"],
    ["ends without disposing anything", "await Promise.all(steps);"],
  ] as const) {
    test(`a process with running steps ${name}`, () => {
      const { status, signal, stderr } = spawnSync(
        process.execPath,
        ["--input-type=module", "-e", script(end)],
        {
          encoding: "utf8",
        },
      );
      assert.deepEqual({ status, signal, stderr }, { status: 0, signal: null, stderr: "" });
    });
  }

  test("a process that packs weights leaves with process.exit", () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-kernels-"));
    try {
      const path = join(folder, "weights.bin");
      const [rows, cols] = [16_384, 2048];
      const byteLength = rows * (cols / 32) * 34;
      writeFileSync(path, new Uint8Array(byteLength).fill(0x22));
      const source = `
        const { createCpuBackend } = await import(${JSON.stringify(packageEntry)});
        const backend = createCpuBackend({ numThreads: 2 });
        const bytes = { file: backend.mapFile(${JSON.stringify(path)}), offset: 0, byteLength: ${byteLength} };
        const source = { type: "q8_0", rows: ${rows}, cols: ${cols}, name: "w", bytes };
        const matrices = [];
        for (let i = 0; i < 4; i++) matrices.push(await backend.createMatrix([source], { packLater: true }));
        const packing = [0, 0, 60_000].map((milliseconds) => backend.packMore(matrices, milliseconds));
        await packing[0];
        process.exit(0);`;
      const { status, signal, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", source], {
        encoding: "utf8",
      });
      assert.deepEqual({ status, signal, stderr }, { status: 0, signal: null, stderr: "" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("a worker thread can be terminated while its steps run", async () => {
    for (let round = 0; round < 4; round++) {
      const source = `(async () => { ${script(`require("node:worker_threads").parentPort.postMessage("running"); await Promise.all(steps);`)} })()`;
      const worker = new Worker(source, { eval: true });
      await new Promise<unknown>((resolve, reject) => worker.once("message", resolve).once("error", reject));
      assert.equal(await worker.terminate(), 1);
    }
  });

  test("a worker thread that finishes leaves cleanly", async () => {
    const worker = new Worker(`(async () => { ${script("await Promise.all(steps);")} })()`, { eval: true });
    const code = await new Promise<number>((resolve, reject) =>
      worker.once("exit", resolve).once("error", reject),
    );
    assert.equal(code, 0);
  });
});
