import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Backend, createCpuBackend } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { fixtureCheckpoint, fixtureGguf } from "@octavo/artifacts/testing/model-fixtures";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { WeightCache } from "./weight-cache/weight-cache.js";
import type { PackingOptions } from "./weight-packer.js";

const MAX_TOKENS = 64;
const prompts = [[1], [3, 1, 4, 1, 5], Array.from({ length: 40 }, (_, i) => (7 * i) % 50)];

type PackMore = NonNullable<Backend["packMore"]>;

/** The same backend with another way to pack. */
function withPackMore(backend: Backend, packMore: PackMore): Backend {
  return new Proxy(backend, {
    get(target, key) {
      if (key === "packMore") return packMore;
      const member: unknown = Reflect.get(target, key);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}

/** Packs a little whenever it is told to. */
class Turns {
  readonly backend: Backend;
  calls = 0;
  #waiting: (() => void) | undefined;
  #called: (() => void) | undefined;

  constructor(backend: Backend) {
    this.backend = withPackMore(backend, async (matrices) => {
      this.calls += 1;
      this.#called?.();
      await new Promise<void>((go) => (this.#waiting = go));
      return (await backend.packMore?.(matrices, 0)) ?? 0;
    });
  }

  /** Resolves when the next call waits. */
  async called(): Promise<void> {
    if (this.#waiting === undefined) await new Promise<void>((called) => (this.#called = called));
  }

  go(): void {
    const go = this.#waiting;
    this.#waiting = undefined;
    go?.();
  }
}

async function load(backend: Backend, path: string, packing?: PackingOptions): Promise<ModelRunner> {
  return ModelRunner.load(backend, await openCheckpoint(path), MAX_TOKENS, "f16", packing);
}

async function logitsOf(runner: ModelRunner): Promise<Float32Array[]> {
  const logits: Float32Array[] = [];
  for (const prompt of prompts) {
    runner.reset();
    logits.push(...(await runner.logits(prompt)));
  }
  return logits;
}

describe("weights that are packed later", () => {
  for (const name of ["llama3-q4_0", "llama3-q8_0", "llama-q4_k", "qwen3moe-q4_0"]) {
    test(`${name} gives the same bits before, while and after it is packed`, async () => {
      using backend = createCpuBackend({ numThreads: 2 });
      using packed = await load(backend, fixtureGguf(name));
      const expected = await logitsOf(packed);
      const turns = new Turns(backend);
      using runner = await load(turns.backend, fixtureGguf(name), { packLaterFrom: 0 });
      assert.equal(runner.weightBytes, packed.weightBytes);
      const state = { isPacked: false };
      const packing = runner.packed.then(() => (state.isPacked = true));
      for (let turn = 0; turn < 4; turn++) {
        assert.deepEqual(await logitsOf(runner), expected);
        assert.ok(!state.isPacked, "packed before the fourth turn");
        await turns.called();
        turns.go();
      }
      const going = setInterval(() => turns.go(), 0);
      while (!state.isPacked) assert.deepEqual(await logitsOf(runner), expected);
      clearInterval(going);
      await packing;
      assert.deepEqual(await logitsOf(runner), expected);
    });
  }

  test("packing ends with the model, at once", async () => {
    using backend = createCpuBackend({ numThreads: 2 });
    const turns = new Turns(backend);
    const warnings: string[] = [];
    const runner = await load(turns.backend, fixtureGguf("llama3-q8_0"), {
      packLaterFrom: 0,
      onWarning: (message) => warnings.push(message),
    });
    await turns.called();
    const { packed } = runner;
    runner[Symbol.dispose]();
    turns.go();
    await Promise.race([packed, turns.called()]);
    assert.deepEqual([turns.calls, warnings], [1, []]);
  });

  test("a model and its backend may go while weights are packed", async () => {
    const warnings: string[] = [];
    for (let round = 0; round < 10; round++) {
      const backend = createCpuBackend({ numThreads: 2 });
      let calls = 0;
      const runner = await new Promise<ModelRunner>((resolve, reject) => {
        const loading = load(
          withPackMore(backend, (matrices, milliseconds) => {
            const packing = backend.packMore?.(matrices, milliseconds);
            if (++calls === 1) loading.then(resolve, reject);
            return packing ?? Promise.resolve(0);
          }),
          fixtureGguf("llama3-q4_0"),
          { packLaterFrom: 0, onWarning: (message) => warnings.push(message) },
        );
      });
      const { packed } = runner;
      runner[Symbol.dispose]();
      backend[Symbol.dispose]();
      await packed;
    }
    assert.deepEqual(warnings, []);
  });

  test("what cannot be packed stays as it is, with a warning", async () => {
    using backend = createCpuBackend({ numThreads: 2 });
    using packed = await load(backend, fixtureGguf("llama3-q8_0"));
    const warnings: string[] = [];
    const failing = withPackMore(backend, () => Promise.reject(new OctavoError("out_of_memory", "no room")));
    const folder = mkdtempSync(join(tmpdir(), "octavo-packed-later-"));
    try {
      using runner = await load(failing, fixtureGguf("llama3-q8_0"), {
        packLaterFrom: 0,
        cache: new WeightCache({ folder }),
        onWarning: (message) => warnings.push(message),
      });
      await runner.packed;
      await runner.saved;
      assert.equal(warnings.length, 1);
      assert.match(warnings[0] ?? "", /Not all weights could be packed.*: no room/);
      assert.deepEqual(readdirSync(folder), []);
      assert.deepEqual(await logitsOf(runner), await logitsOf(packed));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("the cache keeps the same bytes as of weights that were packed at once", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-packed-later-"));
    try {
      const [kept, keptLater] = await Promise.all(
        [undefined, 0].map(async (packLaterFrom, i) => {
          using backend = createCpuBackend({ numThreads: 2 });
          const cache = new WeightCache({ folder: join(folder, `${i}`) });
          using runner = await load(backend, fixtureGguf("llama-q4_k"), { packLaterFrom, cache });
          await runner.saved;
          const names = readdirSync(join(folder, `${i}`)).filter((name) => name.endsWith(".octavo-weights"));
          assert.equal(names.length, 1);
          return readFileSync(join(folder, `${i}`, names[0] ?? ""));
        }),
      );
      assert.deepEqual(keptLater, kept);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("weights that must be packed at once are", async () => {
    using backend = createCpuBackend({ numThreads: 2 });
    using packed = await load(backend, fixtureCheckpoint("llama3"));
    using later = await load(backend, fixtureCheckpoint("llama3"), { packLaterFrom: 0 });
    assert.deepEqual(await logitsOf(later), await logitsOf(packed));
    await later.packed;
    assert.deepEqual(await logitsOf(later), await logitsOf(packed));
  });
});
