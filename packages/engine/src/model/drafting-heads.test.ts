import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createEngine } from "../create-engine.js";
import type { Drafter, DraftRequest } from "../speculation/drafter.js";
import type { SpeculationOptions } from "../speculation/speculation.js";
import { type Collected, collect, generationRequest } from "../testing/fakes/engine-fixture.js";
import {
  draftingNames,
  embeddedPair,
  openDraftingPair,
  openHeadModel,
  readDraftingCases,
} from "../testing/oracles/head-model.js";
import { scheduleProperties } from "../testing/schedules/schedule-properties.js";

/** Passes everything on and notes the drafts by request and output length. */
function noted(drafter: Drafter, drafts: Map<string, number[]>): Drafter {
  return {
    isCostly: drafter.isCostly,
    draft: async (requests: readonly DraftRequest[]) => {
      const tookMs = await drafter.draft(requests);
      for (const { sequence } of requests)
        drafts.set(
          `${sequence.group.requestId}:${sequence.numOutputTokens}`,
          Array.from(sequence.draft.slice()),
        );
      return tookMs ?? undefined;
    },
    follow: (step, plan, result) => drafter.follow!(step, plan, result),
    release: (sequence) => drafter.release(sequence),
    [Symbol.dispose]: () => drafter[Symbol.dispose](),
  };
}

/** Forgets all now and then, as where drafting has paused. */
function forgetful(drafter: Drafter): Drafter {
  let numSteps = 0;
  return {
    ...noted(drafter, new Map()),
    follow: async (step, plan, result) => {
      await drafter.follow!(step, plan, result);
      numSteps += 1;
      if (numSteps % 20 === 0) drafter.forget!();
    },
  };
}

for (const name of draftingNames) {
  describe(`drafts of ${name}`, () => {
    // Chunks that end anywhere, blocks that drafts cross, and prompts of one step.
    for (const sizes of [
      { blockSize: 16, maxNumBatchedTokens: 128 },
      { blockSize: 4, maxNumBatchedTokens: 7 },
    ])
      test(`are those of the published algorithm, in steps of ${sizes.maxNumBatchedTokens} tokens`, async () => {
        const model = await openHeadModel(name);
        const { createDrafter, stateWidths, ...given } = model.parts;
        const drafts = new Map<string, number[]>();
        const engine = createEngine({
          ...given,
          ...sizes,
          maxNumSeqs: 4,
          numBlocks: 96,
          enablePrefixCaching: false,
          ...(stateWidths && { states: { numSlots: 8, maxDraftTokens: 3, widths: stateWidths(3) } }),
          speculation: {
            createDrafter: (pool, cache) => noted(createDrafter!(pool, cache), drafts),
            numSpeculativeTokens: 3,
            adaptive: false,
          },
        });
        const cases = readDraftingCases(name);
        const results = await Promise.all(
          cases.map(({ prompt, greedy }, index) =>
            collect(
              engine.generate({
                ...generationRequest(prompt, { maxTokens: greedy.length, temperature: 0 }),
                requestId: String(index),
              }),
            ),
          ),
        );
        await engine[Symbol.asyncDispose]();
        await model.dispose();
        let compared = 0;
        for (const [index, { greedy, drafts: expected }] of cases.entries()) {
          assert.deepEqual(results[index]?.sequences[0]?.tokens, greedy);
          for (let length = 1; length < greedy.length; length += 1) {
            const drafted = drafts.get(`${index}:${length}`);
            if (drafted === undefined) continue;
            assert.deepEqual(
              drafted,
              expected[length - 1]?.slice(0, drafted.length),
              `behind ${length} tokens`,
            );
            compared += drafted.length;
          }
        }
        assert.ok(compared > 40, `${compared} draft tokens`);
      });
  });
}

describe("the head that was trained for octavo-mini", () => {
  test("is right far more often than chance, and changes no answer", async () => {
    const model = await openDraftingPair(embeddedPair, 512);
    const { createDrafter, ...given } = model.parts;
    const passage = "- carrier: Floup Labs\n- origin: Ljubljana\n- weight: 0.49\n- recipient: Mei Moaria";
    const schema =
      '{"type": "object", "properties": {"recipient": {"type": "string"}, "origin": {"type": "string"}, "weight": {"type": "number"}}, "required": ["recipient", "origin", "weight"]}';
    const prompts = [
      `${passage}\n\nParse the passage into a JSON object with this schema.\n${schema}`,
      "Echo the text below.\n\nsnake rope whale compass sugar salt valley brick grass nest sun flame potato spoon melon ghost",
    ].map((text) => [
      ...given.tokenizer.encode(`<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`),
    ]);
    let [numDrafts, drafted, accepted] = [0, 0, 0];
    const answers = async (
      create?: SpeculationOptions["createDrafter"],
    ): Promise<(readonly number[] | undefined)[]> => {
      [numDrafts, drafted, accepted] = [0, 0, 0];
      const engine = createEngine({
        ...given,
        blockSize: 16,
        maxNumBatchedTokens: 128,
        maxNumSeqs: 4,
        numBlocks: 64,
        ...(create && {
          speculation: { createDrafter: create, numSpeculativeTokens: 4, adaptive: false },
        }),
      });
      engine.observe({
        onDraft: (count, right) => {
          numDrafts += 1;
          drafted += count;
          accepted += right;
        },
      });
      const ask = (prompt: readonly number[]): Promise<Collected> =>
        collect(
          engine.generate(generationRequest(prompt, { maxTokens: 48, temperature: 0, ignoreEos: false })),
        );
      const results = [
        ...(await Promise.all(prompts.map(ask))),
        // their prefixes are in the cache now
        ...(await Promise.all(prompts.map(ask))),
      ];
      await engine[Symbol.asyncDispose]();
      return results.map(({ sequences }) => sequences[0]?.tokens);
    };
    const plain = await answers();
    assert.equal(numDrafts, 0);
    assert.deepEqual(await answers(createDrafter), plain);
    assert.ok(drafted > 80, `${drafted} draft tokens`);
    assert.ok(accepted / drafted > 0.4, `${accepted} of ${drafted} accepted in ${numDrafts} drafts`);
    const whole = drafted;
    assert.deepEqual(
      await answers((pool, cache) => forgetful(createDrafter!(pool, cache))),
      plain,
      "a head that forgets all it has read",
    );
    await model.dispose();
    // it begins again with the next block, and knows at most the text of 20 steps
    assert.ok(drafted > whole / 3, `${drafted} draft tokens, ${whole} of one that forgets nothing`);
    assert.ok(accepted / drafted > 0.15, `${accepted} of ${drafted} accepted in ${numDrafts} drafts`);
  });
});

scheduleProperties("EAGLE-3 drafts", () => openHeadModel("eagle3"), { numRuns: 6, batchSize: 8 });
scheduleProperties("multi-token prediction beside recurrent layers", () => openHeadModel("qwen3-next"), {
  numRuns: 3,
  batchSize: 8,
});
scheduleProperties("multi-token prediction over latent attention", () => openHeadModel("deepseek-v3"), {
  numRuns: 3,
  batchSize: 8,
});
