import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createCpuBackend, type Matrix, type WeightType } from "@octavo/kernels";
import type { MatrixPlan } from "@octavo/artifacts/program/model-plan";
import { type KeptMatrix, WeightCache, type WeightCacheOptions } from "./weight-cache.js";

const root = mkdtempSync(join(tmpdir(), "octavo-weight-cache-"));
const backend = createCpuBackend({ numThreads: 2 });
const source = join(root, "model.bin");
const bytesPerRow: Partial<Record<WeightType, number>> = {
  f32: 1024,
  bf16: 512,
  q4_0: 144,
  q8_0: 272,
  q2_k: 84,
  mxfp4: 136,
};
const cols = 256;
let folder: string;
let runs = 0;

after(() => {
  backend[Symbol.dispose]();
  rmSync(root, { recursive: true });
});

beforeEach(() => {
  folder = join(root, `cache-${runs++}`);
  writeFileSync(source, sourceBytes());
});

/** Small numbers in every type: bytes of 0x22 are finite as f32, bf16 and f16. */
function sourceBytes(): Buffer {
  return Buffer.from(Array.from({ length: 200_000 }, (_, i) => 0x20 + ((i * 7) % 5)));
}

function plan(type: WeightType, rows: number[], firstOffset: number): MatrixPlan {
  let offset = firstOffset;
  const sources = rows.map((count, i) => {
    const byteLength = count * (bytesPerRow[type] ?? 0);
    const tensor = { name: `${type}.${i}`, type, shape: [count, cols], path: source, offset, byteLength };
    offset += byteLength;
    return tensor;
  });
  return { kind: "matrix", rows: rows.reduce((sum, count) => sum + count, 0), cols, sources };
}

const plans = [
  plan("f32", [40], 0),
  plan("bf16", [17], 50_000),
  plan("q4_0", [32, 5], 70_000),
  plan("q8_0", [100], 90_001),
  plan("q2_k", [20, 3], 120_000),
  plan("mxfp4", [9], 125_003),
];

async function pack(which: readonly MatrixPlan[] = plans): Promise<KeptMatrix[]> {
  using file = backend.mapFile(source);
  return Promise.all(
    which.map(async ({ rows, sources }) => {
      const matrix = await backend.createMatrix(
        sources.map(({ name, type, shape, offset, byteLength }) => ({
          name,
          type,
          rows: shape[0] ?? 0,
          cols,
          bytes: { file, offset, byteLength },
        })),
      );
      return { matrix, form: { type: sources[0]?.type ?? "f32", rows, cols } };
    }),
  );
}

const bytesOf = (matrix: Matrix): Buffer => Buffer.from(backend.packedWeights?.bytesOf(matrix) ?? []);

async function start(
  which: readonly MatrixPlan[] = plans,
  options: Partial<WeightCacheOptions> & { dtype?: string; layout?: string } = {},
): Promise<{ hit: Matrix[] | undefined; warnings: string[]; checked: number }> {
  const warnings: string[] = [];
  const { dtype, layout, ...rest } = options;
  const cache = new WeightCache({ folder, onWarning: (message) => warnings.push(message), ...rest });
  const { packedWeights } = backend;
  assert.ok(packedWeights !== undefined);
  let checked = 0;
  const map: typeof packedWeights.map = (form, file, offset, checksum) => {
    if (checksum !== undefined) checked += 1;
    return packedWeights.map(form, file, offset, checksum);
  };
  const asked = {
    packedWeights: { ...packedWeights, layout: layout ?? packedWeights.layout, map },
    mapFile: (path: string) => backend.mapFile(path),
  };
  const hit = await cache.load(asked, which, dtype);
  if (hit === undefined) await cache.save(asked, which, dtype, await pack(which));
  return { hit, warnings, checked };
}

const files = (): string[] =>
  readdirSync(folder)
    .filter((name) => !name.endsWith(".used"))
    .map((name) => join(folder, name));

function onlyFile(): string {
  const [path, ...others] = files();
  assert.ok(path !== undefined && others.length === 0, `files: ${readdirSync(folder).join(", ")}`);
  return path;
}

describe("weight cache", () => {
  test("the second start maps what the first one packed", async () => {
    assert.deepEqual(await start(), { hit: undefined, warnings: [], checked: 0 });
    const { hit, warnings } = await start();
    const packed = await pack();
    assert.deepEqual(
      hit?.map(bytesOf),
      packed.map(({ matrix }) => bytesOf(matrix)),
    );
    assert.deepEqual(
      hit?.map(({ rows }) => rows),
      [40, 17, 37, 100, 23, 9],
    );
    assert.deepEqual(warnings, []);
  });

  test("what was mapped outlives the file's removal", async () => {
    await start();
    const { hit } = await start();
    rmSync(onlyFile());
    const [first] = await pack();
    assert.ok(first !== undefined && hit?.[0] !== undefined);
    assert.deepEqual(bytesOf(hit[0]), bytesOf(first.matrix));
  });

  for (const [change, spoil] of [
    ["a later time of change", () => utimesSync(source, 1e9, 1e9)],
    [
      "another head under the same time and size",
      () => {
        const { atime, mtime } = statSync(source);
        const bytes = sourceBytes();
        bytes[3] = 0x30;
        writeFileSync(source, bytes);
        utimesSync(source, atime, mtime);
      },
    ],
    ["another size", () => writeFileSync(source, Buffer.concat([sourceBytes(), Buffer.of(1)]))],
  ] as const) {
    test(`a source with ${change} is packed again, and the stale file is removed`, async () => {
      utimesSync(source, 5e8, 5e8);
      await start();
      const stale = onlyFile();
      spoil();
      assert.equal((await start()).hit, undefined);
      assert.notEqual(onlyFile(), stale);
    });
  }

  test("other matrices, types and layouts are kept apart", async () => {
    await start();
    assert.equal((await start(plans.slice(1))).hit, undefined);
    assert.equal((await start(plans, { dtype: "bf16" })).hit, undefined);
    assert.equal((await start(plans, { layout: "cpu-0" })).hit, undefined);
    assert.ok((await start(plans, { dtype: "bf16" })).hit !== undefined);
  });

  test("a model with a matrix that has no packed bytes is not kept", async () => {
    const { packedWeights } = backend;
    assert.ok(packedWeights !== undefined);
    const kept = await pack();
    const unpacked = kept[1]?.matrix;
    const asked = {
      packedWeights: {
        ...packedWeights,
        bytesOf: (matrix: Matrix) => (matrix === unpacked ? undefined : packedWeights.bytesOf(matrix)),
        checksumOf: () => assert.fail("nothing is to be kept"),
      },
      mapFile: (path: string) => backend.mapFile(path),
    };
    const warnings: string[] = [];
    const cache = new WeightCache({ folder, onWarning: (message) => warnings.push(message) });
    assert.equal(await cache.load(asked, plans, undefined), undefined);
    await cache.save(asked, plans, undefined, kept);
    assert.deepEqual(warnings, []);
    assert.equal(existsSync(folder), false);
  });

  test("a damaged matrix is detected, and the file replaced", async () => {
    await start();
    const path = onlyFile();
    const sound = readFileSync(path);
    const damaged = Buffer.from(sound);
    damaged[sound.length - 9] = (sound[sound.length - 9] ?? 0) ^ 0x40;
    writeFileSync(path, damaged);
    const { hit, warnings } = await start();
    assert.equal(hit, undefined);
    assert.match(warnings[0] ?? "", /damaged/);
    assert.deepEqual(readFileSync(onlyFile()), sound);
  });

  test("no damage anywhere gives other weights", async () => {
    await start();
    const path = onlyFile();
    const sound = readFileSync(path);
    const expected = (await pack()).map(({ matrix }) => bytesOf(matrix));
    for (let round = 0; round < 60; round++) {
      // The head and the index closely, the rest in strides.
      const at = round < 40 ? round * 31 : Math.floor((sound.length * (round - 39)) / 22);
      const damaged = Buffer.from(sound);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << (round % 8));
      writeFileSync(path, damaged);
      const cache = new WeightCache({ folder });
      const hit = await cache.load(backend, plans, undefined);
      if (hit !== undefined) assert.deepEqual(hit.map(bytesOf), expected, `byte ${at}`);
    }
    for (const length of [0, 5, 44, 100, 4096, sound.length - 1]) {
      writeFileSync(path, sound.subarray(0, length));
      assert.equal(await new WeightCache({ folder }).load(backend, plans, undefined), undefined);
    }
    writeFileSync(path, Buffer.concat([sound, Buffer.of(0)]));
    assert.equal(await new WeightCache({ folder }).load(backend, plans, undefined), undefined);
  });

  const knowsBoots = existsSync("/proc/sys/kernel/random/boot_id");

  test("checksums are looked at again only after the file has changed", { skip: !knowsBoots }, async () => {
    await start();
    assert.equal((await start()).checked, 0, "this machine has written it");
    const path = onlyFile();
    writeFileSync(path, readFileSync(path));
    await delay(50);
    assert.equal((await start()).checked, plans.length, "somebody else has");
    const again = await start();
    assert.equal(again.checked, 0, "the last start has seen all of it");
    assert.deepEqual(
      again.hit?.map(bytesOf),
      (await pack()).map(({ matrix }) => bytesOf(matrix)),
    );
  });

  test("a file with times set back is looked at again", { skip: !knowsBoots }, async () => {
    await start();
    const path = onlyFile();
    const { atime, mtime } = statSync(path);
    const damaged = readFileSync(path);
    damaged[damaged.length - 9] = (damaged[damaged.length - 9] ?? 0) ^ 0x40;
    writeFileSync(path, damaged);
    utimesSync(path, atime, mtime);
    await delay(50);
    const { hit, warnings, checked } = await start();
    assert.equal(hit, undefined);
    assert.equal(checked, plans.length);
    assert.match(warnings[0] ?? "", /damaged/);
  });

  for (const [what, text] of [
    ["of another start of the machine", (mark: string) => mark.replace(/^\S+/, "0-0-0")],
    ["cut short", (mark: string) => mark.slice(0, -1)],
    ["that says nothing", () => ""],
  ] as const) {
    test(`a mark ${what} is not believed`, { skip: !knowsBoots }, async () => {
      await start();
      const mark = `${onlyFile()}.used`;
      writeFileSync(mark, text(readFileSync(mark, "utf8")));
      assert.equal((await start()).checked, plans.length);
    });
  }

  test(
    "a mark as old as the file is not believed: what was written within one tick looks the same",
    {
      skip: !knowsBoots,
    },
    async () => {
      await start();
      const path = onlyFile();
      const changed = statSync(path).ctimeMs / 1000;
      utimesSync(`${path}.used`, changed, changed);
      assert.equal((await start()).checked, plans.length);
    },
  );

  test("a model whose marks cannot be written still starts", async () => {
    await start();
    rmSync(`${onlyFile()}.used`);
    mkdirSync(`${onlyFile()}.used`);
    const { hit, warnings } = await start();
    assert.ok(hit !== undefined);
    assert.deepEqual(warnings, []);
  });

  test("several starts at once leave one sound file", async () => {
    const starts = await Promise.all(Array.from({ length: 4 }, () => start()));
    assert.deepEqual(
      starts.flatMap(({ warnings }) => warnings),
      [],
    );
    onlyFile();
    assert.ok((await start()).hit !== undefined);
  });

  test("a folder that cannot be written costs a warning", async () => {
    writeFileSync(folder, "a file stands here");
    const { hit, warnings } = await start();
    assert.equal(hit, undefined);
    assert.match(warnings.join(), /could not be kept/);
  });

  test("a disk that is nearly full is left alone", async () => {
    const { warnings } = await start(plans, { freeBytes: async () => 1000 });
    assert.match(warnings.join(), /1000 bytes free/);
    assert.deepEqual(files(), []);
  });

  test("sources that change while they are packed are not kept", async () => {
    const cache = new WeightCache({ folder });
    assert.equal(await cache.load(backend, plans, undefined), undefined);
    const kept = await pack();
    utimesSync(source, 5e8, 5e8);
    await cache.save(backend, plans, undefined, kept);
    assert.throws(files, { code: "ENOENT" });
  });

  test("beyond its bytes the least recently used go, and so do abandoned drafts", async () => {
    await start(plans.slice(0, 1));
    const [first] = files();
    await start(plans.slice(3), { dtype: "bf16" });
    const second = files().find((path) => path !== first);
    assert.ok(first !== undefined && second !== undefined);
    for (const path of [first, `${first}.used`]) utimesSync(path, 1e9, 1e9);
    utimesSync(second, 9e8, 9e8);
    writeFileSync(join(folder, "fresh.octavo-draft"), "");
    writeFileSync(join(folder, "old.octavo-draft"), "");
    writeFileSync(join(folder, "notes.txt"), "not ours");
    utimesSync(join(folder, "old.octavo-draft"), 1e9, 1e9);
    const maxBytes = statSync(second).size + 60_000;
    await start(plans.slice(1, 2), { dtype: "f32", maxBytes });
    const names = readdirSync(folder);
    assert.ok(!names.includes(first.slice(folder.length + 1)), "the oldest stayed");
    assert.ok(names.includes(second.slice(folder.length + 1)), "the mark says when it was used");
    const kept = names.filter((name) => name.endsWith(".octavo-weights"));
    assert.equal(kept.length, 2);
    assert.deepEqual(
      names.filter((name) => !kept.includes(name)).toSorted(),
      [...kept.map((name) => `${name}.used`), "fresh.octavo-draft", "notes.txt"].toSorted(),
    );
  });
});
