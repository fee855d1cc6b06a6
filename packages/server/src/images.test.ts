import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { fixtureImage } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "@octavo/engine";
import OpenAI from "openai";
import { pino } from "pino";
import { createServer, type OctavoServer } from "./create-server.js";
import { imageBytesOf, colours, imagePart, photo, wordsPart, urlOf } from "./testing/image-parts.js";

const model = "tiny";

describe("images in requests, through the official clients", () => {
  let llm: LLM;
  let server: OctavoServer;
  let url: string;
  let client: OpenAI;

  before(async () => {
    llm = await LLM.load(fixtureImage("gemma3"), {
      kvCacheMemoryBytes: 1 << 22,
      numThreads: 2,
      limitMmPerPrompt: 2,
      maxNumSeqs: 8,
    });
    const config = { port: 0, servedModelNames: [model], keepAliveTimeoutMs: 1000 } as const;
    server = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    ({ url } = await server.listen());
    client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  after(async () => {
    await server.close();
    await llm[Symbol.asyncDispose]();
  });

  const chat = (
    content: OpenAI.ChatCompletionContentPart[],
    more: Partial<OpenAI.ChatCompletionCreateParamsNonStreaming> = {},
  ): Promise<OpenAI.ChatCompletion> =>
    client.chat.completions.create({
      model,
      messages: [{ role: "user", content }],
      max_tokens: 12,
      temperature: 0,
      ...more,
    });
  const post = async (
    path: string,
    body: object,
  ): Promise<{ status: number; message: string; param: unknown }> => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, ...body }),
    });
    const { error } = (await response.json()) as { error: { message: string; param?: unknown } };
    return { status: response.status, message: error.message, param: error.param };
  };
  const refuse = (content: object[]): ReturnType<typeof post> =>
    post("/v1/chat/completions", { messages: [{ role: "user", content }] });

  it("a chat reads them, counts their tokens, and answers by them", async () => {
    const text = await chat([wordsPart("What is this?")]);
    const first = await chat([photo, wordsPart("What is this?")]);
    const other = await chat([colours, wordsPart("What is this?")]);
    const again = await chat([photo, wordsPart("What is this?")]);
    const answer = (given: OpenAI.ChatCompletion): unknown => given.choices[0]?.message.content;
    assert.notEqual(answer(first), answer(other));
    assert.notEqual(answer(first), answer(text));
    assert.equal(answer(again), answer(first));
    // Two line breaks before and behind, begin, 16 soft tokens, end.
    const added = (first.usage?.prompt_tokens ?? 0) - (text.usage?.prompt_tokens ?? 0);
    assert.ok(added >= 16 + 2 + 2 && added <= 16 + 2 + 4, `${added} tokens`);
    assert.equal(first.usage?.prompt_tokens, other.usage?.prompt_tokens);
  });

  it("prefixes are cached by what images show, not by their tokens", async () => {
    const words = wordsPart("Describe the picture in a few words, please.");
    const cached = async (part: typeof photo): Promise<number> =>
      (await chat([part, words])).usage?.prompt_tokens_details?.cached_tokens ?? -1;
    const clear = imagePart(urlOf("clear.png"));
    const grey = imagePart(urlOf("grey.png"));
    await cached(clear);
    const beforeImage = await cached(grey);
    const whole = await cached(grey);
    assert.ok(whole > beforeImage + 16, `${whole} and ${beforeImage} tokens were cached`);
    const numTextTokens = (await chat([wordsPart("x")])).usage?.prompt_tokens ?? 0;
    assert.ok(beforeImage < numTextTokens + 16, `${beforeImage} tokens of another image were cached`);
  });

  it("two images in one message, and a stream", async () => {
    const content = [wordsPart("One"), photo, wordsPart("and two"), colours];
    const whole = await chat(content);
    let streamed = "";
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content }],
      max_tokens: 12,
      temperature: 0,
      stream: true,
    });
    for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? "";
    assert.equal(streamed, whole.choices[0]?.message.content);
    const turned = await chat([wordsPart("One"), colours, wordsPart("and two"), photo]);
    assert.notEqual(turned.choices[0]?.message.content, streamed);
  });

  it("Responses and Messages give what a chat gives", async () => {
    const whole = (await chat([photo, wordsPart("What is this?")])).choices[0]?.message.content;
    const response = await client.responses.create({
      model,
      input: [
        {
          role: "user",
          content: [
            { type: "input_image", image_url: photo.image_url.url, detail: "auto" },
            { type: "input_text", text: "What is this?" },
          ],
        },
      ],
      max_output_tokens: 12,
      temperature: 0,
    });
    assert.equal(response.output_text, whole);
    const anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
    const data = imageBytesOf("photo.jpg").toString("base64");
    const messages: Anthropic.MessageParam[] = [
      {
        role: "user",
        content: [
          { type: "image", source: { type: "base64", media_type: "image/jpeg", data } },
          { type: "text", text: "What is this?" },
        ],
      },
    ];
    const body = { model, max_tokens: 12, temperature: 0, messages };
    const message = await anthropic.messages.create(body);
    assert.deepEqual(
      message.content.map((block) => (block.type === "text" ? block.text : block.type)),
      [whole],
    );
    const { input_tokens: counted } = await anthropic.messages.countTokens({ model, messages });
    const { input_tokens: read, cache_read_input_tokens: cached } = message.usage;
    assert.equal(counted, read + (cached ?? 0));
  });

  it("nothing is fetched, whatever the URL", async () => {
    for (const target of [
      "http://127.0.0.1:1/a.png",
      "https://example.com/a.png",
      "http://[::1]/a.png",
      "http://169.254.169.254/latest/meta-data",
      "file:///etc/passwd",
      "ftp://host/a.png",
    ]) {
      const { status, message, param } = await refuse([imagePart(target)]);
      assert.equal(status, 400);
      assert.match(message, /the server fetches nothing \((https?|file|ftp):\); send a data URL/);
      assert.equal(param, "messages[0].content[0].image_url.url");
    }
    const response = await post("/v1/responses", {
      input: [{ role: "user", content: [{ type: "input_image", image_url: "http://x/y.png" }] }],
    });
    assert.match(response.message, /the server fetches nothing/);
  });

  it("what the operator lists is fetched, and gives what its bytes give", async () => {
    const requested: string[] = [];
    const store = createHttpServer(({ url: path = "" }, response) => {
      requested.push(path);
      const location =
        path === "/moved" ? "/photo.jpg" : path === "/metadata" ? "http://169.254.169.254/" : undefined;
      if (location !== undefined) response.writeHead(302, { location }).end();
      else response.writeHead(200, { "content-type": "image/jpeg" }).end(imageBytesOf("photo.jpg"));
    });
    await once(store.listen(0, "127.0.0.1"), "listening");
    const host = `127.0.0.1:${(store.address() as AddressInfo).port}`;
    const config = { port: 0, servedModelNames: [model], allowedMediaDomains: [host] } as const;
    const fetching = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    try {
      const { url: base } = await fetching.listen();
      const openai = new OpenAI({ baseURL: `${base}/v1`, apiKey: "none", maxRetries: 0 });
      const anthropic = new Anthropic({ baseURL: base, apiKey: "none", maxRetries: 0 });
      const words = "What is this?";
      const whole = (await chat([photo, wordsPart(words)])).choices[0]?.message.content;
      const ask = async (path: string): Promise<string | null | undefined> => {
        const content = [imagePart(`http://${host}${path}`), wordsPart(words)];
        const messages = [{ role: "user" as const, content }];
        const { choices } = await openai.chat.completions.create({
          model,
          messages,
          max_tokens: 12,
          temperature: 0,
        });
        return choices[0]?.message.content;
      };
      assert.equal(await ask("/photo.jpg"), whole);
      assert.equal(await ask("/moved"), whole);
      const response = await openai.responses.create({
        model,
        input: [
          {
            role: "user",
            content: [
              { type: "input_image", image_url: `http://${host}/photo.jpg`, detail: "auto" },
              { type: "input_text", text: words },
            ],
          },
        ],
        max_output_tokens: 12,
        temperature: 0,
      });
      assert.equal(response.output_text, whole);
      const source = { type: "url" as const, url: `http://${host}/photo.jpg` };
      const messages: Anthropic.MessageParam[] = [
        {
          role: "user",
          content: [
            { type: "image", source },
            { type: "text", text: words },
          ],
        },
      ];
      const body = { model, max_tokens: 12, temperature: 0, messages };
      const message = await anthropic.messages.create(body);
      assert.deepEqual(
        message.content.map((block) => (block.type === "text" ? block.text : block.type)),
        [whole],
      );
      const numRequested = requested.length;
      await assert.rejects(ask("/metadata"), /400.*nothing from 169\.254\.169\.254;/);
      assert.equal(requested.length, numRequested + 1);
    } finally {
      await fetching.close();
      store.closeAllConnections();
      await new Promise((resolve) => store.close(resolve));
    }
  });

  it("misuse is a 400 that says what is wrong", async () => {
    const cases: readonly (readonly [object[], RegExp])[] = [
      [[imagePart("x")], /expected a data URL/],
      [[imagePart("data:image/png,abc")], /must be in base64/],
      [[imagePart("data:image/png;base64,")], /not valid base64/],
      [[imagePart("data:image/png;base64,%%%")], /not valid base64/],
      [[imagePart(`data:image/png;base64,${" ".repeat(200_000)}!`)], /not valid base64/],
      [
        [imagePart(`data:image/svg+xml;base64,${Buffer.from("<svg xmlns='x'/>  ").toString("base64")}`)],
        /Image 0: The image is none of PNG/,
      ],
      [[photo, colours, photo], /has 3 images; at most 2 are taken \(--limit-mm-per-prompt\)/],
      [[photo, wordsPart("<start_of_image>")], /2 places for 1 images/],
      [[photo, wordsPart("<image_soft_token>")], /tokens of 2 images for 1 images/],
      [[{ type: "image_url", image_url: {} }], /an image_url part needs a url/],
      [[{ type: "input_audio", input_audio: {} }], /"input_audio" are not supported/],
    ];
    for (const [content, message] of cases) {
      const refused = await refuse(content);
      assert.equal(refused.status, 400, `${String(message)}: ${refused.message}`);
      assert.match(refused.message, message);
    }
    const cut = await post("/v1/chat/completions", {
      messages: [{ role: "user", content: [photo] }],
      truncate_prompt_tokens: 5,
    });
    assert.match(cut.message, /prompts with images are not cut/);
    const system = await post("/v1/chat/completions", { messages: [{ role: "system", content: [photo] }] });
    assert.match(system.message, /images are taken in messages of the user alone/);
    const embedded = await post("/v1/embeddings", { messages: [{ role: "user", content: [photo] }] });
    assert.match(embedded.message, /images are taken in chats alone/);
    const answered = await chat([wordsPart("still here")]);
    assert.equal(answered.choices.length, 1);
  });

  it("text without images may say what it likes", async () => {
    const { choices } = await chat([wordsPart("<start_of_image> <image_soft_token>")]);
    assert.equal(choices.length, 1);
  });
});
