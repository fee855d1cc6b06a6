import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import { realWorldSchema } from "@octavo/text/structured/testing/real-world/real-world-schema";
import { schemaJudge } from "@octavo/text/structured/testing/real-world/judge";
import OpenAI from "openai";
import { type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";

const numSchemas = 224;
const maxTokens = 400;
/**
 * Added to the logits of tokens that begin with these bytes, which end a text, a list, a record or a chain of records (`null`), or the part of an
 * address before its host: without a prompt that tells it what to write, a model of this size does not know when to.
 */
const bias: Readonly<Record<string, number>> = { '"': 14, "@": 9, "]": 9, "}": 6, n: 6 };

describe("octavo-mini under schemas as people write them", () => {
  let octavoMini: OctavoMini;
  let client: OpenAI;

  before(async () => {
    octavoMini = await startOctavoMini(
      { maxModelLen: 1024, maxNumSeqs: 32, numThreads: 2 },
      { servedModelNames: ["octavo-mini"] },
    );
    ({ client } = octavoMini);
  });
  after(async () => {
    await octavoMini[Symbol.asyncDispose]();
  });

  it("gives whole answers that ajv finds valid, formats included", async () => {
    const random = new TestRandom(2026);
    const logitBias: Record<string, number> = {};
    for (let id = 0; id < octavoMini.llm.tokenizer.vocabSize; id += 1) {
      const more = bias[String.fromCharCode(octavoMini.llm.tokenizer.tokenBytes(id)[0] ?? 0)];
      if (more !== undefined) logitBias[id] = more;
    }
    const cut: string[] = [];
    let numValid = 0;
    await Promise.all(
      Array.from({ length: numSchemas }, async (_, index) => {
        const schema = realWorldSchema(random, index);
        const answer = await client.chat.completions.create({
          model: "octavo-mini",
          messages: [{ role: "user", content: "Describe a person as JSON." }],
          temperature: index % 8 === 0 ? 0 : 1,
          seed: index,
          max_tokens: maxTokens,
          logit_bias: logitBias,
          response_format: {
            type: "json_schema",
            json_schema: { name: "answer", schema: { ...schema }, strict: true },
          },
        });
        const [choice] = answer.choices;
        const text = choice?.message.content ?? "";
        if (choice?.finish_reason !== "stop") {
          cut.push(`${index}: ${text.slice(0, 200)}`);
          return;
        }
        const problem = schemaJudge(schema)(JSON.parse(text));
        assert.equal(problem, undefined, `${text}\nis not valid under\n${JSON.stringify(schema)}`);
        numValid += 1;
      }),
    );
    // Which answers are cut off depends on the machine's rounding; that few are must not.
    assert.ok(numValid >= 200, `${numValid} of ${numSchemas} came to an end; cut off:\n${cut.join("\n")}`);
  });
});
