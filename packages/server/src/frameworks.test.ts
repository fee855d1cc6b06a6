import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";

/** A folder whose node_modules hold `@langchain/openai`, `@langchain/core`, `llamaindex` and `@llamaindex/openai`: 120 MB. */
const folder = process.env["JS_FRAMEWORKS_DIR"] ?? "";
const skip = existsSync(join(folder, "node_modules", "llamaindex"))
  ? false
  : "JS_FRAMEWORKS_DIR names no folder with LangChain.js and LlamaIndex.TS";

/** What of their interfaces is used here. */
interface LangChainModel {
  invoke(messages: string | readonly object[]): Promise<LangChainMessage>;
  stream(messages: string): Promise<AsyncIterable<LangChainMessage>>;
  bindTools(tools: readonly object[]): Pick<LangChainModel, "invoke">;
}
interface LangChainMessage {
  readonly content: string;
  readonly tool_calls: readonly { readonly id: string; readonly name: string; readonly args: unknown }[];
  readonly usage_metadata: { readonly output_tokens: number };
}
interface LlamaIndexModel {
  chat(request: {
    readonly messages: readonly object[];
    readonly stream: true;
  }): Promise<AsyncIterable<{ readonly delta: string }>>;
  chat(request: {
    readonly messages: readonly object[];
  }): Promise<{ readonly message: { readonly content: string } }>;
}
type Constructor<T> = new (settings: object) => T;

function load<T>(name: string): Promise<T> {
  const path = createRequire(join(folder, "package.json")).resolve(name);
  return import(pathToFileURL(path).href) as Promise<T>;
}

/** Frameworks of others against the embedded model, by their packages for OpenAI. */
describe("LangChain.js and LlamaIndex.TS", { skip }, () => {
  let octavoMini: OctavoMini;
  before(async () => {
    octavoMini = await startOctavoMini({ maxModelLen: 1024 }, { servedModelNames: ["octavo-mini"] });
  });
  after(async () => {
    await octavoMini[Symbol.asyncDispose]();
  });
  const baseURL = (): string => `${octavoMini.url}/v1`;
  const hello = [{ role: "user", content: "Hello!" }];
  const whole = async (): Promise<string> => {
    const { text } = await octavoMini.llm.chat(hello, { temperature: 0, maxTokens: 24 });
    return text;
  };

  it("LangChain.js chats, streams, calls tools and embeds", async () => {
    const { ChatOpenAI, OpenAIEmbeddings } = await load<{
      readonly ChatOpenAI: Constructor<LangChainModel>;
      readonly OpenAIEmbeddings: Constructor<{ embedQuery(text: string): Promise<readonly number[]> }>;
    }>("@langchain/openai");
    const client = { apiKey: "none", configuration: { baseURL: baseURL() } };
    const settings = { ...client, model: "octavo-mini", temperature: 0, maxRetries: 0 };
    const model = new ChatOpenAI({ ...settings, maxTokens: 24 });
    const answer = await model.invoke("Hello!");
    assert.equal(answer.content, await whole());
    assert.ok(answer.usage_metadata.output_tokens > 0);
    const pieces: string[] = [];
    for await (const { content } of await model.stream("Hello!")) pieces.push(content);
    assert.equal(pieces.join(""), answer.content);
    assert.ok(pieces.length > 2);

    const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const description = "Get the current weather in a city.";
    const weather = { type: "function", function: { name: "get_weather", description, parameters } };
    const asking = new ChatOpenAI({ ...settings, maxTokens: 128 }).bindTools([weather]);
    const question = { role: "user", content: "What is the weather in Oslo?" };
    const call = await asking.invoke([question]);
    assert.deepEqual(call.tool_calls[0]?.args, { city: "Oslo" });
    const { id } = call.tool_calls[0];
    const result = { role: "tool", tool_call_id: id, content: '{"temperature": 12}' };
    assert.notEqual((await asking.invoke([question, call, result])).content, "");

    const vector = await new OpenAIEmbeddings({ ...client, model: "octavo-mini" }).embedQuery("one");
    assert.ok(vector.length > 0 && vector.every(Number.isFinite));
  });

  it("LlamaIndex.TS chats, streams and embeds", async () => {
    const { OpenAI, OpenAIEmbedding } = await load<{
      readonly OpenAI: Constructor<LlamaIndexModel>;
      readonly OpenAIEmbedding: Constructor<{ getTextEmbedding(text: string): Promise<readonly number[]> }>;
    }>("@llamaindex/openai");
    const client = { apiKey: "none", baseURL: baseURL(), model: "octavo-mini", maxRetries: 0 };
    const model = new OpenAI({ ...client, temperature: 0, maxTokens: 24 });
    const { message } = await model.chat({ messages: hello });
    assert.equal(message.content, await whole());
    const pieces: string[] = [];
    for await (const { delta } of await model.chat({ messages: hello, stream: true })) pieces.push(delta);
    assert.equal(pieces.join(""), message.content);
    const vector = await new OpenAIEmbedding(client).getTextEmbedding("one");
    assert.ok(vector.length > 0 && vector.every(Number.isFinite));
  });
});
