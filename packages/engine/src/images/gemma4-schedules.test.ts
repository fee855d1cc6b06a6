import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fixtureImage, readShapedFixtures } from "@octavo/artifacts/testing/model-fixtures";
import type { PromptImage } from "../api.js";
import type { LoadOptions } from "../llm/load-options.js";
import { imageRequest, loadImageModel, runImageRequest } from "./testing/image-requests.js";

/** The shortest chunk that holds an image, where its tokens see each other, beside three other sequences. */
const chunks = { "gemma4-small": 11, gemma4: 74 } as const;

for (const name of ["gemma4-small", "gemma4"] as const)
  describe(`prompts with images of ${name}`, () => {
    const prompts = readShapedFixtures(name);
    const chunk = chunks[name];
    const schedules: Readonly<Record<string, LoadOptions>> = {
      "in short chunks, without the prefix cache": {
        maxNumBatchedTokens: chunk,
        longPrefillTokenThreshold: 7,
        enablePrefixCaching: false,
      },
      "preempted again and again": {
        maxNumBatchedTokens: chunk + 13,
        hooks: {
          choosePreemptions: (running) =>
            running.flatMap(({ numTokens }, at) => (numTokens % 5 === 2 ? [at] : [])),
        },
      },
    };
    for (const [schedule, options] of Object.entries(schedules))
      test(`give the same bits ${schedule}`, async () => {
        await using plain = await loadImageModel(name, {});
        await using other = await loadImageModel(name, options);
        const alone = await Promise.all(
          prompts.map(async (prompt) => runImageRequest(plain, await imageRequest(plain, prompt))),
        );
        for (const [index, { tokens }] of alone.entries())
          assert.deepEqual(tokens, prompts[index]?.greedy.slice(0, 8));
        const requests = await Promise.all(
          [...prompts, ...prompts].map((prompt) => imageRequest(other, prompt)),
        );
        const answers = await Promise.all(requests.map((request) => runImageRequest(other, request)));
        for (const [at, { tokens, digests }] of answers.entries()) {
          assert.deepEqual(tokens, alone[at % 3]?.tokens);
          assert.deepEqual(digests, alone[at % 3]?.digests);
        }
      });

    test("give the same bits from a prefix that ends within an image, found by its images", async () => {
      await using llm = await loadImageModel(name, {});
      const request = await imageRequest(llm, prompts[2]!);
      const [first, second] = request.images ?? [];
      assert.ok(first !== undefined && second !== undefined);
      const scored = {
        promptLogprobsFrom: second.start + 6,
        params: { ...request.params, promptLogprobs: 0 },
      };
      const cold = await runImageRequest(llm, await imageRequest(llm, prompts[2]!, scored));
      assert.equal(cold.cachedTokens, 0);
      const warm = await runImageRequest(llm, await imageRequest(llm, prompts[2]!, scored));
      assert.ok(warm.cachedTokens > second.start && warm.cachedTokens < second.start + second.numTokens);
      assert.deepEqual(warm.digests, cold.digests);
      assert.deepEqual(warm.promptLogprobs, cold.promptLogprobs);
      const cachedWith = async (images: readonly PromptImage[]): Promise<number> =>
        (await runImageRequest(llm, { ...request, requestId: randomUUID(), images })).cachedTokens;
      const another = { ...second, digest: first.digest };
      assert.equal(await cachedWith([first, another]), 4 * Math.floor(second.start / 4));
    });
  });

test("a chat of the library gives an image as many tokens as its shape takes, and bounds no pixels", async () => {
  await using llm = await loadImageModel("gemma4-small", {});
  const ask = (...names: string[]) => {
    const images = names.map((name) => ({ type: "image" as const, image: readFileSync(fixtureImage(name)) }));
    const content = [...images, { type: "text" as const, text: "What is this?" }];
    return llm.chat([{ role: "user", content }], { maxTokens: 8, temperature: 0 }).result();
  };
  const none = await ask();
  for (const [name, numTokens] of [
    ["photo.jpg", 60],
    ["tall.webp", 56],
  ] as const) {
    const { usage } = await ask(name);
    assert.equal(usage.promptTokens - none.usage.promptTokens, numTokens + 2, name);
  }
  await assert.rejects(loadImageModel("gemma4-small", { maxImagePixels: 4096 }), {
    code: "invalid_option",
    message: /up to 70 tokens/,
  });
});
