import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fixtureImage, readShapedFixtures, shapedModels } from "@octavo/artifacts/testing/model-fixtures";
import type { GenerationRequest, PromptImage } from "../api.js";
import type { LLM } from "../llm/llm.js";
import type { LoadOptions } from "../llm/load-options.js";
import { DraftingFolder } from "../testing/oracles/head-model.js";
import type { SpeculativeConfig } from "../speculation/speculative-config.js";
import { imageRequest, loadImageModel, runImageRequest } from "./testing/image-requests.js";
import { imageAxesOf } from "../step/image-axes.js";

function modelOf(model: string) {
  const prompts = readShapedFixtures(model);
  return {
    prompts,
    load: (options: LoadOptions): Promise<LLM> => loadImageModel(model, options),
    requestOf: (llm: LLM, index: number, more: Partial<GenerationRequest> = {}): Promise<GenerationRequest> =>
      imageRequest(llm, prompts[index]!, more),
  };
}

const dense = modelOf("qwen3-vl");
/** Recurrent state is kept wherever blocks end. */
const everyBlock = { stateSnapshotInterval: 4 };

for (const model of ["qwen2-5-vl", "qwen3-vl", "qwen3-5"])
  describe(`prompts with images of ${model} give the same bits`, () => {
    const { load, requestOf, prompts } = modelOf(model);
    const schedules: Readonly<Record<string, LoadOptions>> = {
      "in chunks that cut images": { maxNumBatchedTokens: 11 },
      "in short chunks beside others": { maxNumBatchedTokens: 40, longPrefillTokenThreshold: 3 },
      "with drafts from the prompt": { speculativeConfig: { method: "ngram", numSpeculativeTokens: 3 } },
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
        const all = [0, 1, 2];
        const alone = await Promise.all(
          all.map(async (index) => runImageRequest(plain, await requestOf(plain, index))),
        );
        for (const [index, { tokens }] of alone.entries())
          assert.deepEqual(tokens, prompts[index]?.greedy.slice(0, 8));
        const requests = await Promise.all([...all, ...all].map((index) => requestOf(other, index)));
        const answers = await Promise.all(requests.map((request) => runImageRequest(other, request)));
        for (const [at, { tokens, digests }] of answers.entries()) {
          assert.deepEqual(tokens, alone[at % 3]?.tokens);
          assert.deepEqual(digests, alone[at % 3]?.digests);
        }
      });

    for (const [where, at] of [
      ["within", 6],
      ["behind", 19],
    ] as const)
      test(`from a prefix that ends ${where} an image`, async () => {
        await using llm = await load(everyBlock);
        const request = await requestOf(llm, 2);
        const [, second] = request.images ?? [];
        assert.ok(second !== undefined);
        const from = second.start + at;
        const scored = { promptLogprobsFrom: from, params: { ...request.params, promptLogprobs: 0 } };
        const cold = await runImageRequest(llm, await requestOf(llm, 2, scored));
        assert.equal(cold.cachedTokens, 0);
        const warm = await runImageRequest(llm, await requestOf(llm, 2, scored));
        assert.ok(warm.cachedTokens > second.start && warm.cachedTokens < from, `${warm.cachedTokens}`);
        assert.equal(warm.cachedTokens >= second.start + second.numTokens, where === "behind");
        assert.deepEqual(warm.digests, cold.digests);
        assert.deepEqual(warm.promptLogprobs, cold.promptLogprobs);
      });

    test("blocks are found again by the images in them", async () => {
      await using llm = await load(everyBlock);
      const request = await requestOf(llm, 2);
      const cachedWith = async (images: readonly PromptImage[] | undefined): Promise<number> =>
        (await runImageRequest(llm, { ...request, requestId: randomUUID(), images })).cachedTokens;
      const [first, second] = request.images ?? [];
      assert.ok(first !== undefined && second !== undefined);
      assert.equal(await cachedWith([first, second]), 0);
      const whole = await cachedWith([first, second]);
      assert.ok(whole > second.start + second.numTokens);
      assert.equal(
        await cachedWith([{ ...first, digest: second.digest }, second]),
        4 * Math.floor(first.start / 4),
      );
      assert.equal(
        await cachedWith([first, { ...second, digest: first.digest }]),
        4 * Math.floor(second.start / 4),
      );
    });
  });

test("a layer that predicts further tokens drafts behind images and changes no answer", async () => {
  using drafting = new DraftingFolder("qwen3-5", fixtureImage("qwen3-5"));
  const hybrid = modelOf("qwen3-5");
  const answer = async (speculativeConfig?: SpeculativeConfig) => {
    await using llm = await loadImageModel(drafting.model, { speculativeConfig });
    let numDrafted = 0;
    llm.engine.observe({ onDraft: (drafted) => void (numDrafted += drafted) });
    const requests = await Promise.all([1, 2].map((index) => hybrid.requestOf(llm, index)));
    const answers = await Promise.all(requests.map((request) => runImageRequest(llm, request)));
    return { numDrafted, answers };
  };
  const plain = await answer();
  const drafted = await answer(drafting.config);
  assert.equal(plain.numDrafted, 0);
  assert.ok(drafted.numDrafted > 0);
  assert.deepEqual(drafted.answers, plain.answers);
});

for (const model of ["qwen3-vl", "qwen3-5"])
  test(`${model} answers texts with the bits of a model that does not see`, async () => {
    const { load, requestOf } = modelOf(model);
    await using seeing = await load({});
    await using blind = await load({ limitMmPerPrompt: 0 });
    const answers = await Promise.all(
      [seeing, blind].map(async (llm) => runImageRequest(llm, await requestOf(llm, 0))),
    );
    assert.deepEqual(answers[0], answers[1]);
  });

test("the most pixels of an image can be chosen, within what the model sees", async () => {
  const image = readFileSync(fixtureImage("photo.jpg"));
  const chat = [{ role: "user", content: [{ type: "image", image }] }] as const;
  const promptTokens = async (options: LoadOptions): Promise<number> => {
    await using llm = await dense.load(options);
    return (await llm.chat([...chat], { maxTokens: 1 })).usage.promptTokens;
  };
  const usual = await promptTokens({});
  assert.equal(await promptTokens({ maxImagePixels: 4096 }), usual);
  assert.ok((await promptTokens({ maxImagePixels: 1024 })) < usual);
  for (const maxImagePixels of [1023, 16_384 * 256 + 1])
    await assert.rejects(dense.load({ maxImagePixels }), {
      code: "invalid_option",
      param: "max_image_pixels",
      message: /1024 to 4194304 pixels, not \d+/,
    });
  await assert.rejects(loadImageModel("gemma3", { maxImagePixels: 4096 }), {
    code: "invalid_option",
    message: /all images of this model are resized to/,
  });
});

test("tokens stand along time, row and column", () => {
  const images = [
    { start: 3, numTokens: 6, grid: { rows: 3, columns: 2 } },
    { start: 10, numTokens: 2, grid: { rows: 1, columns: 2 } },
  ];
  const same = (at: number): number[] => [at, at, at];
  const expected = [
    same(0),
    same(1),
    same(2),
    [3, 3, 3],
    [3, 3, 4],
    [3, 4, 3],
    [3, 4, 4],
    [3, 5, 3],
    [3, 5, 4],
    same(6),
    [7, 7, 7],
    [7, 7, 8],
    same(9),
    same(10),
  ];
  assert.deepEqual(
    expected.map((_, position) => imageAxesOf(images, position)),
    expected,
  );
});

for (const model of shapedModels)
  test(`a chat of the library gives an image as many tokens as its shape takes: ${model}`, async () => {
    await using llm = await loadImageModel(model, {});
    const ask = (...names: string[]) => {
      const images = names.map((name) => ({
        type: "image" as const,
        image: readFileSync(fixtureImage(name)),
      }));
      const content = [...images, { type: "text" as const, text: "What is this?" }];
      return llm.chat([{ role: "user", content }], { maxTokens: 8, temperature: 0 }).result();
    };
    const none = await ask();
    for (const [name, numTokens] of [
      ["photo.jpg", 12],
      ["tall.webp", 14],
      ["grey.png", 6],
      ["turned.jpg", 12],
    ] as const) {
      const { usage } = await ask(name);
      assert.equal(usage.promptTokens - none.usage.promptTokens, numTokens + 2, name);
    }
  });
