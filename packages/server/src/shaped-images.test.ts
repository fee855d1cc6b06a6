import assert from "node:assert/strict";
import { describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { fixtureImage } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "@octavo/engine";
import OpenAI from "openai";
import { pino } from "pino";
import { createServer } from "./create-server.js";
import { imageBytesOf, colours, imagePart, photo, wordsPart } from "./testing/image-parts.js";

const model = "tiny";

describe("images of their own shape, through the official clients", () => {
  for (const name of ["qwen2-5-vl", "qwen3-vl", "qwen3-5"])
    it(`${name}: chat, Responses and Messages read them, and counts are those of their shapes`, async () => {
      await using llm = await LLM.load(fixtureImage(name), {
        kvCacheMemoryBytes: 1 << 22,
        numThreads: 2,
        limitMmPerPrompt: 2,
        maxNumSeqs: 4,
      });
      const config = { port: 0, servedModelNames: [model], keepAliveTimeoutMs: 1000 } as const;
      const server = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
      try {
        const { url } = await server.listen();
        const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
        const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
        const text = wordsPart("What is this?");
        const ask = (...content: OpenAI.ChatCompletionContentPart[]): Promise<OpenAI.ChatCompletion> =>
          openai.chat.completions.create({
            model,
            messages: [{ role: "user", content }],
            max_tokens: 12,
            temperature: 0,
          });
        const [none, one, two] = await Promise.all([ask(text), ask(photo, text), ask(photo, colours, text)]);
        const numTokens = (answer: OpenAI.ChatCompletion): number => answer.usage?.prompt_tokens ?? 0;
        // 6 x 8 patches each, four a token, and a mark before and behind
        assert.equal(numTokens(one) - numTokens(none), 14);
        assert.equal(numTokens(two) - numTokens(none), 28);
        const [choice] = one.choices;
        const response = await openai.responses.create({
          model,
          input: [
            {
              role: "user",
              content: [
                { type: "input_image", image_url: photo.image_url.url, detail: "auto" },
                { type: "input_text", text: text.text },
              ],
            },
          ],
          max_output_tokens: 12,
          temperature: 0,
        });
        assert.equal(response.output_text, choice?.message.content);
        const data = imageBytesOf("photo.jpg").toString("base64");
        const source = { type: "base64" as const, media_type: "image/jpeg" as const, data };
        const messages: Anthropic.MessageParam[] = [
          { role: "user", content: [{ type: "image", source }, text] },
        ];
        const { input_tokens: counted } = await anthropic.messages.countTokens({ model, messages });
        assert.equal(counted, numTokens(one));
        const body = { model, max_tokens: 12, temperature: 0, messages };
        const [block] = (await anthropic.messages.create(body)).content;
        assert.equal(block?.type === "text" ? block.text : undefined, choice?.message.content);
        await assert.rejects(ask(photo, photo, photo, text), /400.*3 images; at most 2/);
        await assert.rejects(ask(photo, wordsPart("<|image_pad|>")), /400.*2 places for 1 images/);
        const broken = imagePart(`data:image/png;base64,${Buffer.alloc(40).toString("base64")}`);
        await assert.rejects(ask(broken, text), /400.*Image 0: The image is none of PNG/);
      } finally {
        await server.close();
      }
    });
});

describe("images of Gemma 4, through its template", () => {
  it("a chat and Responses read them, count their tokens, and refuse what they do not read", async () => {
    await using llm = await LLM.load(fixtureImage("gemma4-small"), {
      kvCacheMemoryBytes: 1 << 22,
      numThreads: 2,
      limitMmPerPrompt: 2,
      maxNumSeqs: 4,
    });
    const config = { port: 0, servedModelNames: [model], keepAliveTimeoutMs: 1000 } as const;
    const server = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    try {
      const { url } = await server.listen();
      const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
      const text = wordsPart("What is this?");
      const ask = (...content: object[]): Promise<OpenAI.ChatCompletion> =>
        openai.chat.completions.create({
          model,
          messages: [{ role: "user", content: content as OpenAI.ChatCompletionContentPart[] }],
          max_tokens: 12,
          temperature: 0,
        });
      const [none, one, two] = await Promise.all([ask(text), ask(photo, text), ask(photo, photo, text)]);
      const numTokens = (answer: OpenAI.ChatCompletion): number => answer.usage?.prompt_tokens ?? 0;
      // 18 x 30 patches, nine a token, and a mark before and behind
      assert.equal(numTokens(one) - numTokens(none), 62);
      assert.equal(numTokens(two) - numTokens(none), 124);
      const response = await openai.responses.create({
        model,
        input: [
          {
            role: "user",
            content: [
              { type: "input_image", image_url: photo.image_url.url, detail: "auto" },
              { type: "input_text", text: text.text },
            ],
          },
        ],
        max_output_tokens: 12,
        temperature: 0,
      });
      assert.equal(response.output_text, one.choices[0]?.message.content);
      await assert.rejects(ask(photo, wordsPart("<|image|>")), /400.*2 places for 1 images/);
      const sound = { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } };
      await assert.rejects(ask(sound, text), /400.*input_audio/);
      await assert.rejects(
        ask({ type: "video_url", video_url: { url: photo.image_url.url } }),
        /400.*video_url/,
      );
    } finally {
      await server.close();
    }
  });
});
