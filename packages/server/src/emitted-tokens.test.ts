import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type OpenAI from "openai";
import { type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";

interface Streamed {
  readonly text: string;
  readonly ids: readonly number[];
  readonly finish: string | null;
  readonly tokens: number;
}

describe("an answer continued from tokens that another server gave", () => {
  let mini: OctavoMini;
  before(async () => {
    mini = await startOctavoMini({ maxModelLen: 256 }, { servedModelNames: ["octavo-mini"] });
  });
  after(() => mini[Symbol.asyncDispose]());

  const ask = async (fields: object): Promise<Streamed> => {
    const body = {
      model: "octavo-mini",
      messages: [{ role: "user", content: "What is the capital of France?" }],
      max_tokens: 24,
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
      ...fields,
    } as OpenAI.ChatCompletionCreateParamsStreaming;
    const ids: number[] = [];
    let text = "";
    let finish: string | null = null;
    let tokens = 0;
    for await (const chunk of await mini.client.chat.completions.create(body)) {
      tokens = chunk.usage?.completion_tokens ?? tokens;
      const [choice] = chunk.choices;
      if (choice === undefined) continue;
      text += choice.delta.content ?? "";
      ids.push(...((choice as { token_ids?: number[] }).token_ids ?? []));
      finish = choice.finish_reason ?? finish;
    }
    return { text, ids, finish, tokens };
  };

  for (const [name, sampling] of [
    ["greedy", { temperature: 0 }],
    ["sampled under a seed", { temperature: 1.3, seed: 11 }],
    [
      "with penalties and a stop string",
      { temperature: 0.9, seed: 5, presence_penalty: 1, stop: ["zzz"], ignore_eos: true },
    ],
    [
      "under a JSON schema",
      {
        temperature: 1,
        seed: 3,
        response_format: {
          type: "json_schema",
          json_schema: {
            name: "x",
            schema: { type: "object", properties: { a: { type: "string", maxLength: 8 } }, required: ["a"] },
          },
        },
      },
    ],
  ] as const) {
    it(`is the same from any token on: ${name}`, async () => {
      const whole = await ask(sampling);
      assert.ok(whole.ids.length > 3, `${whole.ids.length} tokens`);
      for (const kept of [1, 2, Math.floor(whole.ids.length / 2), whole.ids.length - 1]) {
        const again = await ask({ ...sampling, octavo: { emitted_token_ids: whole.ids.slice(0, kept) } });
        assert.deepEqual(again, whole, `continued behind ${kept} of ${whole.ids.length} tokens`);
      }
    });
  }

  it("refuses what cannot have been emitted", async () => {
    const whole = await ask({ temperature: 0, max_tokens: 8 });
    const refused = async (fields: object): Promise<string> => {
      const error: unknown = await ask(fields).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof Error, "refused");
      return error.message;
    };
    const limits = { max_tokens: 8 };
    assert.match(
      await refused({ ...limits, octavo: { emitted_token_ids: whole.ids.slice(0, 1).concat(99_999_999) } }),
      /vocabulary/,
    );
    assert.match(
      await refused({ ...limits, octavo: { emitted_token_ids: Array.from({ length: 8 }, () => 5) } }),
      /at most 7/,
    );
    assert.match(await refused({ ...limits, n: 2, octavo: { emitted_token_ids: [5] } }), /n must be 1/);
    assert.match(await refused({ ...limits, octavo: { emitted_token_ids: [] } }), /emitted_token_ids/);
  });
});
