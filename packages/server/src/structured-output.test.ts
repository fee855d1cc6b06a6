import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { TestRandom } from "@octavo/text/testing/random";
import { randomSchema } from "@octavo/text/structured/testing/random-schema";
import { Ajv2020 } from "ajv/dist/2020.js";
import OpenAI, { BadRequestError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";
import { parseExposition } from "./testing/parse-exposition.js";

const numSchemas = 200;

describe("octavo-mini under constraints, over HTTP", () => {
  let octavoMini: OctavoMini;
  let client: OpenAI;
  let url: string;

  before(async () => {
    octavoMini = await startOctavoMini(
      { maxModelLen: 512, maxNumSeqs: 32, numThreads: 2 },
      { servedModelNames: ["octavo-mini"] },
    );
    ({ client, url } = octavoMini);
  });
  after(async () => {
    await octavoMini[Symbol.asyncDispose]();
  });

  const model = "octavo-mini";
  const messages = [{ role: "user", content: "Describe a person as JSON." }] as const;

  async function complete(body: object): Promise<{ text: string; reason: string | null }> {
    const answer = await client.completions.create({ model, prompt: "Answer: ", ...body } as never);
    const [choice] = (answer as OpenAI.Completion).choices;
    return { text: choice!.text, reason: choice!.finish_reason };
  }

  it("gives values that ajv finds valid, for hundreds of schemas", async () => {
    const random = new TestRandom(11);
    const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
    let numWhole = 0;
    // A model of this size does not know when a string is over: tokens that end one are made likely.
    const bias: Record<string, number> = {};
    for (let id = 0; id < octavoMini.llm.tokenizer.vocabSize; id += 1)
      if (octavoMini.llm.tokenizer.tokenBytes(id)[0] === 0x22) bias[id] = 6;
    await Promise.all(
      Array.from({ length: numSchemas }, async (_, seed) => {
        const schema = randomSchema(random) as Record<string, unknown>;
        const answer = await client.chat.completions.create({
          model,
          messages: [...messages],
          temperature: seed % 2,
          seed,
          max_tokens: 128,
          ...(seed % 8 !== 0 && { logit_bias: bias }),
          response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } },
        });
        const [choice] = answer.choices;
        if (choice?.finish_reason !== "stop") return;
        numWhole += 1;
        const validate = ajv.compile(schema);
        const text = choice.message.content ?? "";
        assert.ok(
          validate(JSON.parse(text)),
          `${text}\n${JSON.stringify(schema)}\n${JSON.stringify(validate.errors)}`,
        );
      }),
    );
    // About half do; which ones depends on the machine's rounding.
    assert.ok(numWhole > numSchemas / 3, `${numWhole} of ${numSchemas} came to an end`);
  });

  it("serves the openai package's parse with zod, and the same text streamed", async () => {
    const Person = z.object({
      name: z.string().max(12),
      age: z.int().min(0).max(130),
      hobbies: z.array(z.enum(["chess", "tea"])).max(2),
    });
    const request = {
      model,
      messages: [...messages],
      seed: 4,
      max_tokens: 200,
      response_format: zodResponseFormat(Person, "person"),
    };
    const parsed = await client.chat.completions.parse(request);
    const [choice] = parsed.choices;
    assert.ok(choice?.message.parsed);
    assert.deepEqual(Person.parse(choice.message.parsed), choice.message.parsed);
    const stream = client.chat.completions.stream(request);
    assert.equal((await stream.finalChatCompletion()).choices[0]?.message.content, choice.message.content);
    let text = "";
    const chunks = await client.chat.completions.create({ ...request, stream: true });
    for await (const chunk of chunks) text += chunk.choices[0]?.delta.content ?? "";
    assert.equal(text, choice.message.content);
  });

  it("takes every kind of constraint under every name for it", async () => {
    const colours = ["red", "green", "dark blue"];
    const grammar = 'root ::= "I " ("like" | "love") " " [a-z]{1,9} "."';
    const cases: readonly (readonly [object, (text: string) => boolean])[] = [
      [{ structured_outputs: { choice: colours } }, (text) => colours.includes(text)],
      [{ guided_choice: colours, n: 1, logprobs: 1 }, (text) => colours.includes(text)],
      [{ structured_outputs: { regex: "[0-9]{3}-[a-f]{2}" } }, (text) => /^[0-9]{3}-[a-f]{2}$/.test(text)],
      [{ guided_regex: "\\d\\d?/\\d\\d?" }, (text) => /^\d\d?\/\d\d?$/.test(text)],
      [{ structured_outputs: { grammar } }, (text) => /^I (like|love) [a-z]+\.$/.test(text)],
      [{ guided_grammar: grammar }, (text) => /^I (like|love) [a-z]+\.$/.test(text)],
      [{ guided_json: { type: "integer", maximum: 9, minimum: 3 } }, (text) => /^[3-9]$/.test(text)],
      [{ guided_json: JSON.stringify({ enum: ["a", 1] }) }, (text) => text === '"a"' || text === "1"],
      [{ response_format: { type: "json_object" } }, (text) => typeof JSON.parse(text) === "object"],
      [
        {
          structured_outputs: {
            json: { type: "array", items: { const: 1 }, minItems: 3, maxItems: 3 },
            disable_any_whitespace: true,
          },
        },
        (text) => text === "[1, 1, 1]",
      ],
      [
        {
          structured_outputs: {
            json: { type: "array", items: { const: 1 }, minItems: 2, maxItems: 2 },
            whitespace_pattern: "~",
          },
        },
        (text) => text === "[~1,~1~]",
      ],
    ];
    for (const [constraint, accepts] of cases) {
      const { text, reason } = await complete({ ...constraint, max_tokens: 120, temperature: 0.8, seed: 3 });
      if (reason === "length" && "response_format" in constraint) continue;
      assert.equal(reason, "stop", `${JSON.stringify(constraint)} gave ${text}`);
      assert.ok(accepts(text), `${JSON.stringify(constraint)} gave ${text}`);
    }
  });

  it("constrains structural tags to their schemas and leaves other text free", async () => {
    const structures = [{ begin: "<n>", schema: { type: "integer", minimum: 10, maximum: 99 }, end: "</n>" }];
    const { text } = await complete({
      prompt: "<n>",
      max_tokens: 60,
      temperature: 0,
      logit_bias: { [octavoMini.llm.tokenizer.encode("<", { addSpecialTokens: false })[0]!]: 30 },
      response_format: { type: "structural_tag", structures, triggers: ["<n"] },
    });
    for (const [, inside = ""] of text.matchAll(/<n(.*?)(?:<|$)/g))
      assert.match(inside, /^(?:>(?:[1-9]\d?)?)?$/, text);
  });

  it("works together with n, stop strings, min_tokens and logprobs", async () => {
    const request = { model, prompt: "Numbers: ", max_tokens: 40, temperature: 1, seed: 8 };
    const constraint = { structured_outputs: { regex: "[a-z]{2,6}( [a-z]{2,6}){0,9}" } };
    const several = (await client.completions.create({
      ...request,
      ...constraint,
      n: 4,
      logprobs: 2,
    } as never)) as OpenAI.Completion;
    for (const { text } of several.choices) assert.match(text, /^[a-z]{1,6}( [a-z]{0,6}){0,9}$/);
    const alone = await complete({ ...request, ...constraint, min_tokens: 12 });
    assert.match(alone.text, /^[a-z]{2,6}( [a-z]{0,6}){0,9}$/);
    const [first = ""] = alone.text.split(" ");
    const stopped = await complete({ ...request, ...constraint, stop: [" "] });
    assert.ok(!stopped.text.includes(" "), stopped.text);
    assert.ok(first.length > 0);
  });

  it("refuses hostile constraints in bounded time while others are served", async () => {
    let deep = "1";
    for (let depth = 0; depth < 30_000; depth += 1) deep = `[${deep}]`;
    const hostile = [
      { structured_outputs: { regex: `${"(".repeat(30_000)}a${")".repeat(30_000)}` } },
      { structured_outputs: { grammar: `root ::= ${"(".repeat(50_000)}` } },
      { structured_outputs: { json: `{"const": ${deep}}` } },
      { structured_outputs: { regex: "((a{1,1000}){1,1000}){1,1000}" } },
      { guided_json: { $ref: "#" } },
    ];
    const refusals = hostile.map((constraint) =>
      complete({ ...constraint, max_tokens: 4 }).then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    assert.equal(
      (await complete({ guided_regex: "(a+)+b", max_tokens: 20, seed: 1 })).text.replace(/a+b?/, ""),
      "",
    );
    for (const error of await Promise.all(refusals))
      assert.ok(error === undefined || error instanceof BadRequestError, String(error));
  });

  it("counts compiled and cached grammars", async () => {
    const read = async (): Promise<{ known: number; made: number; compiled: number }> => {
      const samples = parseExposition(await (await fetch(`${url}/metrics`)).text());
      const value = (name: string, cached?: string): number =>
        [...samples.values()]
          .flatMap((family) => family.samples)
          .filter(
            (sample) => sample.name === name && (cached === undefined || sample.labels["cached"] === cached),
          )
          .reduce((sum, sample) => sum + sample.value, 0);
      return {
        known: value("octavo:grammar_requests_total", "true"),
        made: value("octavo:grammar_requests_total", "false"),
        compiled: value("octavo:grammar_compile_seconds_count"),
      };
    };
    const first = await read();
    for (let round = 0; round < 3; round += 1)
      await complete({ guided_choice: ["only here"], max_tokens: 8 });
    const last = await read();
    assert.deepEqual(
      [last.known - first.known, last.made - first.made, last.compiled - first.compiled],
      [2, 1, 1],
    );
  });
});
