import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { writeTinyFolder } from "@octavo/artifacts/testing/tiny-checkpoint";
import type { QuantizeOptions } from "./options.js";
import { RunLock } from "./output/run-lock.js";
import { quantize } from "./quantize.js";
import { folderContents } from "./testing/artifact-values.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-resume-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
const tiny = join(scratch, "tiny");
writeTinyFolder(tiny, { type: "bf16", numLayers: 3 });
const texts = join(scratch, "texts.txt");
writeFileSync(texts, "The quick brown fox jumps over the lazy dog; 0123456789 times, or more. ".repeat(40));
let counter = 0;
const nextOut = (): string => join(scratch, `out-${counter++}`);

/** Stops a run once so many units are written. */
async function stopAfter(units: number, options: QuantizeOptions): Promise<void> {
  const stop = new AbortController();
  const run = quantize(tiny, options, {
    signal: stop.signal,
    onProgress: ({ doneUnits }) => doneUnits >= units && stop.abort(),
  });
  await assert.rejects(run, { code: "request_cancelled" });
}

const calibrated = { calibration: texts, numSamples: 6, sampleTokens: 48, numThreads: 1 } as const;
const resumable: readonly Partial<QuantizeOptions>[] = [
  { method: "int8" },
  { method: "gguf:Q8_0" },
  { method: "gptq", groupSize: 32, actOrder: true, ...calibrated },
  { method: "awq", groupSize: 32, ...calibrated },
  { method: "int8", ...calibrated },
];

function titleOf({ method, calibration }: Partial<QuantizeOptions>): string {
  return calibration === undefined ? `${method}` : `${method} with texts`;
}

describe("a run that was ended goes on", () => {
  for (const options of resumable) {
    test(`${titleOf(options)}: the same bytes as without a stop, from the last whole unit`, async () => {
      const method = options.method ?? "";
      const whole = nextOut();
      await quantize(tiny, { ...options, method, out: whole });
      const out = nextOut();
      await stopAfter(2, { ...options, method, out });
      assert.ok(!existsSync(out));
      const seen: number[] = [];
      await quantize(
        tiny,
        { ...options, method, out },
        { onProgress: ({ doneUnits }) => seen.push(doneUnits) },
      );
      assert.equal(seen[0], 2);
      assert.deepEqual(folderContents(out), folderContents(whole));
      assert.ok(!existsSync(`${out}.partial`));
    });

    test(`${titleOf(options)}: what a kill left of a unit, or damaged, is written again`, async () => {
      const method = options.method ?? "";
      const whole = nextOut();
      await quantize(tiny, { ...options, method, out: whole });
      const out = nextOut();
      await stopAfter(3, { ...options, method, out });
      const artifact = join(`${out}.partial`, "artifact");
      const [last = ""] = readdirSync(artifact).toSorted().toReversed();
      const bytes = readFileSync(join(artifact, last));
      bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1;
      writeFileSync(join(artifact, last), bytes);
      const seen: number[] = [];
      await quantize(
        tiny,
        { ...options, method, out },
        { onProgress: ({ doneUnits }) => seen.push(doneUnits) },
      );
      assert.equal(seen[0], 2);
      assert.deepEqual(folderContents(out), folderContents(whole));
    });
  }

  test("with other options it is refused, and says which folder is in the way", async () => {
    const out = nextOut();
    await stopAfter(1, { method: "fp8", out });
    await assert.rejects(quantize(tiny, { method: "int8", out }), {
      code: "invalid_option",
      message: /\.partial/,
    });
  });

  test("two runs into one folder are kept apart", async () => {
    const out = nextOut();
    await stopAfter(2, { method: "fp8", out });
    {
      using _ = RunLock.take(join(`${out}.partial`, "lock"));
      await assert.rejects(quantize(tiny, { method: "fp8", out }), {
        code: "invalid_option",
        param: "out",
        message: /out is being written by process \d+ on /,
      });
    }
    const alone = nextOut();
    await quantize(tiny, { method: "fp8", out: alone });
    await quantize(tiny, { method: "fp8", out });
    assert.deepEqual(folderContents(out), folderContents(alone));
    assert.ok(!existsSync(`${out}.partial`));
  });

  test("the lock of a run that was killed holds nobody up, and one that ended early leaves none", async () => {
    const out = nextOut();
    await stopAfter(2, { method: "fp8", out });
    const lock = join(`${out}.partial`, "lock");
    assert.ok(!existsSync(lock));
    writeFileSync(lock, JSON.stringify({ pid: 2 ** 30, host: hostname(), startTicks: 1 }));
    const seen: number[] = [];
    await quantize(tiny, { method: "fp8", out }, { onProgress: ({ doneUnits }) => seen.push(doneUnits) });
    assert.equal(seen[0], 2);
    assert.ok(!existsSync(`${out}.partial`));
  });

  test("a folder OUT.partial of someone else's is left alone", async () => {
    const out = nextOut();
    mkdirSync(`${out}.partial`);
    writeFileSync(join(`${out}.partial`, "mine"), "");
    await assert.rejects(quantize(tiny, { method: "fp8", out }), { message: /holds something else/ });
    assert.deepEqual(readdirSync(`${out}.partial`), ["mine"]);
  });

  test("under another name of the model, which a GGUF file holds, it is refused", async () => {
    const renamed = join(scratch, "a-longer-name");
    symlinkSync(tiny, renamed);
    const out = nextOut();
    await stopAfter(2, { method: "gguf:Q8_0", out });
    await assert.rejects(quantize(renamed, { method: "gguf:Q8_0", out }), {
      code: "invalid_option",
      message: /\.partial/,
    });
  });

  test("what is not its own, or no record, does not count", async () => {
    const out = nextOut();
    const artifact = join(`${out}.partial`, "artifact");
    mkdirSync(artifact, { recursive: true });
    writeFileSync(
      join(artifact, "model-00001-of-00005.safetensors"),
      "of a run that was killed in its first unit",
    );
    await quantize(tiny, { method: "gguf:Q8_0", out });
    assert.deepEqual(readdirSync(out).toSorted(), [
      "README.md",
      "model-Q8_0.gguf",
      "octavo-quantization.json",
    ]);

    const whole = nextOut();
    await quantize(tiny, { method: "fp8", out: whole });
    const broken = nextOut();
    await stopAfter(2, { method: "fp8", out: broken });
    const progress = join(`${broken}.partial`, "progress.json");
    const { fingerprint } = JSON.parse(readFileSync(progress, "utf8")) as { fingerprint: string };
    writeFileSync(progress, JSON.stringify({ fingerprint, units: [null, { file: 3 }] }));
    await quantize(tiny, { method: "fp8", out: broken });
    assert.deepEqual(folderContents(broken), folderContents(whole));
  });

  test("progress runs from nothing to all, with the time left in between", async () => {
    const seen: { share: number; leftMs: number | undefined }[] = [];
    await quantize(
      tiny,
      { method: "fp8", out: nextOut() },
      { onProgress: (progress) => seen.push(progress) },
    );
    assert.equal(seen[0]?.share, 0);
    assert.equal(seen[0]?.leftMs, undefined);
    assert.ok(seen.slice(1).every(({ leftMs }) => leftMs !== undefined && leftMs >= 0));
    assert.equal(seen.at(-1)?.share, 1);
  });
});
