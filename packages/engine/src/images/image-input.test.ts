import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { fixtureImage } from "@octavo/artifacts/testing/model-fixtures";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import { ImageInput } from "./image-input.js";
import { siglipReader } from "./image-reader.js";

const bytesOf = (name: string): Uint8Array => readFileSync(fixtureImage(name));
const [photo, colours] = [bytesOf("photo.jpg"), bytesOf("colours.png")];
const tokens = Int32Array.from({ length: 20 }, (_, at) => (at >= 2 && at < 18 ? 272 : 1));

/** With a tower that only counts what it is asked for. */
async function inputWith(
  run: () => Promise<void> = async () => {},
): Promise<{ input: ImageInput; asked: number[] }> {
  const checkpoint = await openCheckpoint(fixtureImage("gemma3"));
  const vision = checkpoint.container?.vision;
  assert.ok(vision !== undefined && "tensors" in vision && vision.kind === "siglip");
  const asked: number[] = [];
  const rows = async (patches: Float32Array): Promise<Float32Array> => {
    asked.push(patches.length);
    await run();
    return patches.slice(0, 16 * 64);
  };
  return {
    input: new ImageInput(siglipReader({ rows }, vision), createTokenizer(checkpoint.tokenizer), 2),
    asked,
  };
}

test("an image is read once for a scope, while it is read and afterwards", async () => {
  const { input, asked } = await inputWith();
  const [first, second] = await Promise.all([input.place(tokens, [photo]), input.place(tokens, [photo])]);
  assert.equal(asked.length, 1);
  assert.equal(first[0]?.rows, second[0]?.rows);
  await input.place(tokens, [photo], { cacheScope: "another" });
  assert.equal(asked.length, 2);
  const [other] = await input.place(tokens, [colours]);
  assert.equal(asked.length, 3);
  assert.notDeepEqual(other?.digest, first[0]?.digest);
  assert.equal(first[0]?.digest.length, 8);
});

test("what failed is tried again", async () => {
  let fails = true;
  const { input, asked } = await inputWith(() =>
    fails ? Promise.reject(new Error("no luck")) : Promise.resolve(),
  );
  await assert.rejects(input.place(tokens, [photo]), { message: /^Image 0: no luck/ });
  fails = false;
  await input.place(tokens, [photo]);
  assert.equal(asked.length, 2);
});

test("no more images wait than may, and who gives up waits no longer", async () => {
  const { input } = await inputWith(() => new Promise(() => {}));
  const images = Array.from({ length: 65 }, (_, at) => Buffer.concat([colours, Buffer.of(at)]));
  const waiting = images.map((image) => input.place(tokens, [image]));
  await assert.rejects(waiting[64]!, { code: "queue_full", message: /64 images wait/ });
  const leaving = new AbortController();
  const late = input.place(tokens, [images[0]!], { signal: leaving.signal });
  leaving.abort(new Error("left"));
  await assert.rejects(late, /left/);
  await assert.rejects(input.place(tokens, [images[1]!], { signal: leaving.signal }), /left/);
});

test("one signal serves the images of any number of prompts without a warning", async () => {
  const { input } = await inputWith();
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on("warning", note);
  try {
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 48 }, () => input.place(tokens, [photo], { signal })));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(getEventListeners(signal, "abort").length, 0);
    assert.deepEqual(warnings, []);
  } finally {
    process.off("warning", note);
  }
});

test("texts get an image's tokens where the template put its mark", async () => {
  const { input } = await inputWith();
  const soft = "<image_soft_token>".repeat(16);
  assert.equal(
    await input.expand("a<start_of_image>b", [photo]),
    `a\n\n<start_of_image>${soft}<end_of_image>\n\nb`,
  );
  assert.equal(await input.expand("no image", []), "no image");
  await assert.rejects(input.expand("a", [photo]), {
    code: "invalid_request",
    message: /0 places for 1 images/,
  });
  await assert.rejects(input.expand("a", [photo, photo, photo]), { message: /3 images; at most 2/ });
  await assert.rejects(input.place(tokens.subarray(0, 17), [photo]), {
    message: /15 tokens of an image in a row/,
  });
  await assert.rejects(input.place(tokens, []), { message: /tokens of 1 images for 0 images/ });
});

test("without sharp, what to install is said", () => {
  const hook =
    'export async function resolve(name, context, next) { if (name === "sharp") throw new Error("missing"); return next(name, context); }';
  const register = `import { register } from "node:module"; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)});`;
  const script = `
    const { decodeImage } = await import(${JSON.stringify(new URL("./decode-image.js", import.meta.url).href)});
    await decodeImage(Buffer.from("GIF89a and some more")).catch(({ code, message }) => console.log(code, message));`;
  const { stdout } = spawnSync(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(register)}`, "--input-type=module", "-e", script],
    { encoding: "utf8" },
  );
  assert.match(stdout, /^native_unavailable .*npm install sharp@0\.35\.5/);
});
