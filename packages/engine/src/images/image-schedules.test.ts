import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fixtureImage, readImageFixtures } from "@octavo/artifacts/testing/model-fixtures";
import type { GenerationRequest, PromptImage } from "../api.js";
import type { LLM } from "../llm/llm.js";
import type { LoadOptions } from "../llm/load-options.js";
import { imageRequest, loadImageModel, runImageRequest } from "./testing/image-requests.js";
import { withoutCutImage } from "../scheduler/prompt-image.js";

const fixtures = readImageFixtures();

const load = (options: LoadOptions): Promise<LLM> => loadImageModel("gemma3", options);
const requestOf = (
  llm: LLM,
  index: number,
  more: Partial<GenerationRequest> = {},
): Promise<GenerationRequest> => imageRequest(llm, fixtures[index]!, more);

describe("prompts with images give the same bits", () => {
  const schedules: Readonly<Record<string, LoadOptions>> = {
    "in chunks that an image just fits": { maxNumBatchedTokens: 20 },
    "in chunks that an image does not fill": { maxNumBatchedTokens: 27 },
    "in short chunks beside others": { maxNumBatchedTokens: 40, longPrefillTokenThreshold: 3 },
    "without the prefix cache": { enablePrefixCaching: false },
    "preempted again and again": {
      maxNumBatchedTokens: 24,
      hooks: {
        choosePreemptions: (running) =>
          running.flatMap(({ numTokens }, at) => (numTokens % 5 === 2 ? [at] : [])),
      },
    },
  };
  for (const [name, options] of Object.entries(schedules))
    test(name, async () => {
      await using plain = await load({});
      await using other = await load(options);
      const alone = await Promise.all(
        [0, 1].map(async (index) => runImageRequest(plain, await requestOf(plain, index))),
      );
      assert.deepEqual(alone[0]?.tokens, fixtures[0]?.greedy.slice(0, 8));
      const requests = await Promise.all([0, 1, 0, 1].map((index) => requestOf(other, index)));
      const text = other
        .generate(
          Int32Array.from({ length: 60 }, (_, at) => at),
          { maxTokens: 30 },
        )
        .result();
      const answers = await Promise.all(requests.map((request) => runImageRequest(other, request)));
      for (const [at, { tokens, digests }] of answers.entries()) {
        assert.deepEqual(tokens, alone[at % 2]?.tokens);
        assert.deepEqual(digests, alone[at % 2]?.digests);
      }
      await text;
    });

  test("from a prefix that ends within an image", async () => {
    await using llm = await load({});
    const params = (await requestOf(llm, 1)).params;
    const scored = { promptLogprobsFrom: 30, params: { ...params, promptLogprobs: 0 } };
    const cold = await runImageRequest(llm, await requestOf(llm, 1, scored));
    assert.equal(cold.cachedTokens, 0);
    const warm = await runImageRequest(llm, await requestOf(llm, 1, scored));
    assert.equal(warm.cachedTokens, 28);
    assert.deepEqual(warm.digests, cold.digests);
    assert.deepEqual(warm.promptLogprobs, cold.promptLogprobs);
  });
});

test("blocks are found again by the images in them, from the first block with one on", async () => {
  await using llm = await load({});
  const request = await requestOf(llm, 1);
  const cachedWith = async (images: readonly PromptImage[] | undefined): Promise<number> =>
    (await runImageRequest(llm, { ...request, requestId: randomUUID(), images })).cachedTokens;
  const [first, second] = request.images ?? [];
  assert.ok(first !== undefined && second !== undefined);
  assert.equal(await cachedWith([first, second]), 0);
  const whole = await cachedWith([first, second]);
  assert.equal(whole, 52);
  // The first image begins at 5, so that a block of four tokens comes before it; the second at 28.
  assert.equal(await cachedWith([{ ...first, digest: second.digest }, second]), 4);
  assert.equal(await cachedWith([first, { ...second, digest: first.digest }]), 28);
  const lastWord = first.digest.with(7, (first.digest[7] ?? 0) ^ 1);
  assert.equal(await cachedWith([{ ...first, digest: lastWord }, second]), 4);
  assert.equal(await cachedWith(undefined), 4);
  assert.equal(await cachedWith([first, second]), whole);
});

test("a step ends within no image", () => {
  const images = [5, 21, 60].map((start) => ({
    start,
    numTokens: 16,
    digest: new Int32Array(8),
    rows: new Float32Array(0),
  }));
  const cases = [
    // from, count, most, taken
    [0, 4, 100, 4],
    [0, 5, 100, 5],
    [0, 6, 100, 5],
    [0, 30, 100, 21],
    [0, 37, 100, 37],
    [5, 1, 16, 16],
    [5, 1, 15, 0],
    [5, 0, 100, 0],
    [9, 3, 12, 12],
    [5, 20, 20, 16],
    [37, 30, 100, 23],
    [76, 9, 9, 9],
  ] as const;
  for (const [from, count, most, taken] of cases)
    assert.equal(withoutCutImage(images, from, count, most), taken, `${count} from ${from} of ${most}`);
  assert.equal(withoutCutImage(undefined, 3, 7, 7), 7);
});

test("images that do not fit their prompt or the step are refused", async () => {
  await using llm = await load({ maxNumBatchedTokens: 20 });
  const request = await requestOf(llm, 0);
  const [image] = request.images ?? [];
  assert.ok(image !== undefined);
  const refuse = (images: readonly PromptImage[], message: RegExp): void =>
    assert.throws(() => llm.engine.generate({ ...request, images }), {
      code: "invalid_request",
      message,
    });
  refuse([image, image], /each behind the one before/);
  refuse([{ ...image, start: 30 }], /ends at 46, behind the prompt's 35 tokens/);
  refuse([{ ...image, rows: image.rows.subarray(64) }], /has 960 values; 16 rows of 64/);
  refuse(
    [{ ...image, start: 8, numTokens: 17, rows: new Float32Array(17 * 64) }],
    /certainly holds 16; raise max_num_batched/,
  );
});

test("what a model lacks for images is said when it is loaded", async () => {
  const warned = async (options: LoadOptions): Promise<readonly [string | undefined, string]> => {
    const warnings: string[] = [];
    await using llm = await load({ ...options, onWarning: (message) => void warnings.push(message) });
    assert.equal(llm.images, undefined);
    return [warnings.find((message) => message.includes("served as text")), llm.imageRefusal];
  };
  const [off, refusal] = await warned({ limitMmPerPrompt: 0 });
  assert.match(
    off ?? "",
    /^Gemma3ForConditionalGeneration is served as text, and \d+ tensors are not loaded: images are turned off/,
  );
  assert.match(refusal, /turned off \(--limit-mm-per-prompt\)/);
  assert.match(
    (await warned({ maxNumBatchedTokens: 19 }))[1],
    /raise max_num_batched_tokens or lower max_num_seqs/,
  );
  assert.match((await warned({ tensorParallelSize: 2 }))[1], /tensor_parallel_size of 1/);
  assert.match((await warned({ enableSleepMode: true }))[1], /not taken in sleep mode/);
  await using llm = await load({});
  assert.equal(llm.images?.maxImages, 16);
});

test("a chat of the library takes images as bytes of files", async () => {
  await using llm = await load({});
  const image = (name: string) => ({ type: "image" as const, image: readFileSync(fixtureImage(name)) });
  const ask = (name: string): Promise<string> => {
    const content = [image(name), { type: "text" as const, text: "What is this?" }];
    return llm
      .chat([{ role: "user", content }], { maxTokens: 8, temperature: 0 })
      .result()
      .then(({ text }) => text);
  };
  assert.notDeepEqual(await ask("photo.jpg"), await ask("colours.png"));
  assert.deepEqual(await ask("photo.jpg"), await ask("photo.jpg"));
  await assert.rejects(async () => llm.chat([{ role: "user", content: [{ type: "image" }] }]).result(), {
    code: "invalid_request",
    message: /needs `image`/,
  });
  const broken = [{ type: "image" as const, image: new Uint8Array(40) }];
  await assert.rejects(async () => llm.chat([{ role: "user", content: broken }]).result(), {
    code: "invalid_request",
    message: /^Image 0: The image is none of PNG/,
  });
  await using blind = await load({ limitMmPerPrompt: 0 });
  await assert.rejects(async () => blind.chat([{ role: "user", content: broken }]).result(), {
    code: "invalid_request",
    message: /takes no images: images are turned off/,
  });
});
