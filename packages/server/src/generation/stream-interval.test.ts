import assert from "node:assert/strict";
import { it } from "node:test";
import type { GenerationEvent, SequenceDelta } from "@octavo/engine";
import * as fc from "fast-check";
import { startTestServer } from "../testing/test-server.js";
import { inIntervals } from "./stream-interval.js";

function delta(index: number, token: number, isLast: boolean): SequenceDelta {
  return {
    index,
    text: String.fromCharCode(97 + (token % 26)),
    tokens: [token],
    logprobs: token % 3 === 0 ? undefined : [{ token, logprob: -1, rank: 1, top: [] }],
    finishReason: isLast ? "stop" : undefined,
    stopReason: undefined,
  };
}

async function* streamOf(events: readonly GenerationEvent[]): AsyncGenerator<GenerationEvent> {
  for (const event of events) yield await Promise.resolve(event);
}

async function deltasOf(events: AsyncIterable<GenerationEvent>): Promise<SequenceDelta[]> {
  const deltas: SequenceDelta[] = [];
  for await (const event of events) if (event.kind === "delta") deltas.push(...event.deltas);
  return deltas;
}

it("keeps order and loses nothing within a sequence; only its first and last chunk may be short", async () => {
  const property = fc.asyncProperty(
    fc.array(fc.array(fc.nat(2), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 40 }),
    fc.integer({ min: 1, max: 9 }),
    async (steps, interval) => {
      const left = [0, 0, 0];
      for (const step of steps) for (const index of new Set(step)) left[index]! += 1;
      let token = 0;
      const events = steps.map((step): GenerationEvent => ({
        kind: "delta",
        deltas: [...new Set(step)].map((index) => delta(index, token++, --left[index]! === 0)),
      }));
      const fields = { stream: true, stream_interval: interval };
      const given = await deltasOf(streamOf(events));
      const found = await deltasOf(inIntervals(streamOf(events), fields));
      for (const index of [0, 1, 2]) {
        const before = given.filter((one) => one.index === index);
        const after = found.filter((one) => one.index === index);
        assert.deepEqual(
          after.flatMap(({ tokens }) => tokens),
          before.flatMap(({ tokens }) => tokens),
        );
        assert.equal(after.map(({ text }) => text).join(""), before.map(({ text }) => text).join(""));
        assert.deepEqual(
          after.flatMap(({ logprobs }) => logprobs ?? []),
          before.flatMap(({ logprobs }) => logprobs ?? []),
        );
        assert.equal(after.at(-1)?.finishReason, before.at(-1)?.finishReason);
        for (const { tokens } of after.slice(1, -1)) assert.ok(tokens.length >= interval);
      }
    },
  );
  await fc.assert(property, { numRuns: 60, seed: 1 });
});

it("a stream has fewer chunks and the same answer", async () => {
  await using server = await startTestServer({}, { reply: () => "0123456789abcdef" });
  const read = async (
    fields: object,
  ): Promise<{ text: string; chunks: number; prompt: string | undefined }> => {
    const stream = await server.client.completions.create({
      model: "fake/model",
      prompt: "x",
      stream: true,
      ...fields,
    });
    let [text, chunks] = ["", 0];
    let prompt: string | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.text ?? "";
      chunks += 1;
      prompt ??= (chunk.choices[0] as { prompt_text?: string } | undefined)?.prompt_text;
    }
    return { text, chunks, prompt };
  };
  const plain = await read({});
  const joined = await read({ stream_interval: 5, return_prompt_text: true });
  assert.equal(joined.text, plain.text);
  assert.ok(joined.chunks < plain.chunks / 2, `${joined.chunks} of ${plain.chunks}`);
  assert.deepEqual([plain.prompt, joined.prompt], [undefined, "<|bos|>x"]);
});
