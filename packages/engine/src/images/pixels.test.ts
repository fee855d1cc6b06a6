import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fixtureImage, readPixelFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { readImageProcessing } from "@octavo/artifacts/vision/image-processing";
import { decodeImage } from "./decode-image.js";
import { patchesOf, patchOrder, pixelsOf } from "./patches.js";
import { prepareImage } from "./prepare-image.js";
import { resize } from "./resize.js";

const colours = readFileSync(fixtureImage("colours.png"));

describe("images as transformers' processor prepares them", () => {
  for (const { image, settings, pixels } of readPixelFixtures()) {
    const processing = readImageProcessing("preprocessor_config.json", settings);
    test(`${image}, ${processing.resample}, ${processing.width} pixels`, async () => {
      const found = pixelsOf(await decodeImage(readFileSync(fixtureImage(image))), processing);
      assert.equal(found.length, pixels.length);
      const most = found.reduce((far, value, at) => Math.max(far, Math.abs(value - (pixels[at] ?? NaN))), 0);
      assert.ok(most <= 1e-3, `pixels differ by ${most}`);
    });
  }
});

test("an image of its own size is not touched", () => {
  const image = { width: 3, height: 2, channels: 1, data: Uint8Array.of(1, 2, 3, 250, 251, 252) };
  assert.deepEqual(resize(image, 3, 2, "bicubic"), image);
  assert.deepEqual([...resize(image, 1, 1, "bilinear").data], [127]);
});

test("patches that become one token stand side by side", () => {
  const layout = { patchSize: 2, patchesPerSide: 4, poolSize: 2 };
  assert.deepEqual(
    [...patchOrder({ rows: 4, columns: 4 }, layout.poolSize)],
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15],
  );
  const pixels = Float32Array.from({ length: 3 * 64 }, (_, at) => at);
  const patches = patchesOf(pixels, layout);
  // The third patch lies at the start of the second row of patches: pixel rows 2 and 3, of each channel.
  assert.deepEqual([...patches.subarray(24, 36)], [16, 17, 24, 25, 80, 81, 88, 89, 144, 145, 152, 153]);
});

describe("images that are refused", () => {
  const refused = (bytes: Uint8Array, message: RegExp): Promise<void> =>
    assert.rejects(decodeImage(bytes), { code: "invalid_request", message });

  test("what is no image, and formats that run more than a decoder", async () => {
    await refused(new Uint8Array(0), /none of PNG, JPEG, GIF, WebP/);
    await refused(
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
      /none of PNG/,
    );
    await refused(Buffer.from("%PDF-1.4 and so on, and on"), /none of PNG/);
  });

  test("broken ones", async () => {
    await refused(colours.subarray(0, 600), /cannot be decoded/);
    await refused(Buffer.concat([colours.subarray(0, 30), Buffer.alloc(500)]), /cannot be decoded/);
  });

  test("a small file of very many pixels", async () => {
    const header = Buffer.from(colours);
    header.writeUInt32BE(60_000, 16);
    header.writeUInt32BE(60_000, 20);
    await refused(header, /more than 67108864 pixels|cannot be decoded/);
  });
});

test("a worker prepares images, and its refusals come back with their code", async () => {
  const { settings, pixels } = readPixelFixtures()[0]!;
  const processing = readImageProcessing("", settings);
  const layout = { patchSize: 14, patchesPerSide: 4, poolSize: 2 };
  const { patches } = await prepareImage({ bytes: colours, square: { processing, layout } });
  const expected = patchesOf(pixels, layout);
  assert.ok(patches.every((value, at) => Math.abs(value - (expected[at] ?? NaN)) <= 1e-3));
  await assert.rejects(
    prepareImage({ bytes: Buffer.from("GIF8 but nothing more"), square: { processing, layout } }),
    {
      code: "invalid_request",
      message: /cannot be decoded/,
    },
  );
});

test("a processor of other steps is refused by name", () => {
  const { settings } = readPixelFixtures()[0]!;
  const of = (changes: object): void =>
    void readImageProcessing("p.json", { ...(settings as object), ...changes });
  assert.throws(() => of({ resample: 0 }), { code: "artifact_unsupported", message: /resample 0/ });
  assert.throws(() => of({ do_pan_and_scan: true }), {
    code: "artifact_unsupported",
    message: /do_pan_and_scan/,
  });
  assert.throws(() => of({ do_normalize: false }), {
    code: "artifact_unsupported",
    message: /do_normalize false/,
  });
  assert.throws(() => of({ size: { shortest_edge: 4 } }), { code: "artifact_invalid" });
});
