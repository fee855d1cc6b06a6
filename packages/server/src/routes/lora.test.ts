import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { LLM } from "@octavo/engine";
import type { Completion } from "@octavo/protocol";
import OpenAI, { NotFoundError } from "openai";
import { pino } from "pino";
import { createServer, type OctavoServer } from "../create-server.js";
import { parseExposition } from "../testing/parse-exposition.js";
import { startTestServer } from "../testing/test-server.js";

const fixtures = new URL("../../../artifacts/fixtures/", import.meta.url);
const pathOf = (name: string): string => fileURLToPath(new URL(`adapters/${name}`, fixtures));
const expectedOf = (name: string): { readonly prompt: number[]; readonly greedy: number[] } =>
  JSON.parse(readFileSync(new URL(`adapters/${name}.json`, fixtures), "utf8")) as {
    prompt: number[];
    greedy: number[];
  };
const all = expectedOf("llama3-all");
const rslora = expectedOf("llama3-rslora");

/** The official client does not know vLLM's field. */
const unending = { ignore_eos: true };

describe("LoRA adapters over HTTP", () => {
  let llm: LLM;
  let server: OctavoServer;
  let url: string;
  let client: OpenAI;

  before(async () => {
    llm = await LLM.load(fileURLToPath(new URL("models/checkpoints/llama3", fixtures)), {
      maxModelLen: 256,
      maxNumSeqs: 8,
      maxNumBatchedTokens: 64,
      numThreads: 2,
      enableLora: true,
      loraModules: [{ name: "first", path: pathOf("llama3-all"), baseModelName: "llama-3" }],
    });
    const config = { port: 0, servedModelNames: ["tiny"], allowRuntimeLoraUpdating: true } as const;
    server = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    ({ url } = await server.listen());
    client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  after(async () => {
    await server.close();
    await llm[Symbol.asyncDispose]();
  });

  async function post(path: string, body: object): Promise<{ status: number; text: string }> {
    const response = await fetch(`${url}/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  }

  async function complete(model: string, prompt: readonly number[]): Promise<Completion> {
    const fields = { temperature: 0, max_tokens: 24, ignore_eos: true, return_token_ids: true };
    const { status, text } = await post("completions", { model, prompt, ...fields });
    assert.equal(status, 200, text);
    return JSON.parse(text) as Completion;
  }

  it("lists adapters as models, under what they adapt", async () => {
    const { data } = await client.models.list();
    assert.deepEqual(
      data.map((card) => {
        const { id, root, parent } = card as typeof card & { root: string; parent: string | null };
        return { id, parent, isAdapter: root === pathOf("llama3-all") };
      }),
      [
        { id: "tiny", parent: null, isAdapter: false },
        { id: "first", parent: "llama-3", isAdapter: true },
      ],
    );
    assert.equal((await client.models.retrieve("first")).id, "first");
  });

  it("requests select an adapter by model, next to requests for the model itself", async () => {
    const [plain, adapted, again] = await Promise.all([
      complete("tiny", all.prompt),
      complete("first", all.prompt),
      complete("first", all.prompt),
    ]);
    assert.equal(adapted.model, "first");
    assert.deepEqual(adapted.choices[0]?.token_ids, all.greedy);
    assert.deepEqual(again.choices[0]?.token_ids, all.greedy);
    assert.notDeepEqual(plain.choices[0]?.token_ids, all.greedy);
    const chat = await client.chat.completions.create({
      model: "first",
      messages: [{ role: "user", content: "hi" }],
      max_tokens: 2,
    });
    assert.equal(chat.model, "first");
    const [own, other] = await Promise.all(
      ["tiny", "first"].map((model) => client.embeddings.create({ model, input: "text" })),
    );
    assert.equal(other?.model, "first");
    assert.notDeepEqual(own?.data[0]?.embedding, other?.data[0]?.embedding);
  });

  it("loads, replaces and unloads while it serves", async () => {
    const load = (fields: object) => post("load_lora_adapter", { lora_name: "second", ...fields });
    assert.deepEqual(await load({ lora_path: pathOf("llama3-rslora") }), {
      status: 200,
      text: "Success: LoRA adapter 'second' added successfully.",
    });
    assert.deepEqual((await complete("second", rslora.prompt)).choices[0]?.token_ids, rslora.greedy);
    const taken = await load({ lora_path: pathOf("llama3-all") });
    assert.equal(taken.status, 400);
    assert.match(taken.text, /loaded already; set load_inplace/);
    assert.equal((await load({ lora_path: pathOf("llama3-all"), load_inplace: true })).status, 200);
    assert.deepEqual((await complete("second", all.prompt)).choices[0]?.token_ids, all.greedy);
    assert.deepEqual(await post("unload_lora_adapter", { lora_name: "second" }), {
      status: 200,
      text: "Success: LoRA adapter 'second' removed successfully.",
    });
    await assert.rejects(client.models.retrieve("second"), NotFoundError);
    assert.deepEqual(
      (await client.models.list()).data.map(({ id }) => id),
      ["tiny", "first"],
    );
  });

  it("an unloaded adapter finishes the answers it has begun", async () => {
    await post("load_lora_adapter", { lora_name: "leaving", lora_path: pathOf("llama3-all") });
    const stream = await client.completions.create({
      model: "leaving",
      prompt: all.prompt,
      temperature: 0,
      max_tokens: 200,
      stream: true,
      ...unending,
    });
    let pieces = 0;
    let finish: string | null | undefined;
    for await (const chunk of stream) {
      if (pieces++ === 0) {
        const { status, text } = await post("unload_lora_adapter", { lora_name: "leaving" });
        assert.equal(status, 200);
        assert.match(text, /still run under it: 1; its memory is freed when they end/);
      }
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    assert.equal(finish, "length");
    assert.equal((await post("completions", { model: "leaving", prompt: "x" })).status, 404);
  });

  it("says what is wrong with a request about adapters", async () => {
    const cases = [
      ["load_lora_adapter", { lora_name: "x" }, 400, /lora_path/],
      ["load_lora_adapter", { lora_name: "", lora_path: "x" }, 400, /lora_name/],
      ["load_lora_adapter", { lora_name: "tiny", lora_path: pathOf("llama3-all") }, 400, /own name/],
      ["unload_lora_adapter", { lora_name: "x" }, 404, /no adapter \\"x\\"/],
      ["completions", { model: "x", prompt: "a" }, 404, /this server serves \\"tiny\\", \\"first\\"/],
    ] as const;
    for (const [path, body, status, message] of cases) {
      const answer = await post(path, body);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.text, message);
    }
  });

  it("tells what is at a path to the operator's key only", async () => {
    const config = { port: 0, allowRuntimeLoraUpdating: true, apiKeys: ["op"] } as const;
    await using keyed = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    const address = await keyed.listen();
    const paths = [
      ["/nowhere", /no such file or folder/],
      [fileURLToPath(fixtures), /adapter_config/],
      ["/etc/passwd", /./],
      ["/root/.ssh/id_rsa", /./],
      [pathOf("phi3-fused"), /which the model lacks/],
    ] as const;
    const answers = new Set<string>();
    for (const [path, told] of paths) {
      const body = { lora_name: "x", lora_path: path };
      const { status, text } = await post("load_lora_adapter", body);
      answers.add(`${status} ${text}`);
      const asked = await fetch(`${address.url}/v1/load_lora_adapter`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer op" },
        body: JSON.stringify(body),
      });
      assert.match(await asked.text(), told);
    }
    assert.equal(answers.size, 1, [...answers].join("\n"));
    assert.match([...answers][0] ?? "", /^404 .*no adapter for this model was found there/);
  });

  it("an adapter under a name of the model's own is refused at the start", () => {
    const config = { port: 0, servedModelNames: ["tiny", "first"] } as const;
    assert.throws(() => createServer({ model: llm, config, logger: pino({ level: "silent" }) }), {
      code: "invalid_option",
      message: /"first" is a name of the served model itself/,
    });
  });

  it("tells which adapters run", async () => {
    const stream = await client.completions.create({
      model: "first",
      prompt: all.prompt,
      max_tokens: 200,
      stream: true,
      ...unending,
    });
    const samples = [];
    for await (const _ of stream) {
      if (samples.length > 0) continue;
      const exposition = parseExposition(await (await fetch(`${url}/metrics`)).text());
      samples.push(...(exposition.get("vllm:lora_requests_info")?.samples ?? []));
    }
    assert.equal(samples.length, 1);
    const { labels, value } = samples[0]!;
    assert.deepEqual(
      {
        max: labels["max_lora"],
        waiting: labels["waiting_lora_adapters"],
        running: labels["running_lora_adapters"],
      },
      { max: "8", waiting: "", running: "first" },
    );
    assert.ok(value > 1e9);
  });
});

it("adapters cannot be changed unless the operator allows it", async () => {
  await using server = await startTestServer();
  for (const path of ["/v1/load_lora_adapter", "/v1/unload_lora_adapter"]) {
    const response = await server.post(path, { lora_name: "x", lora_path: "/etc" });
    assert.equal(response.status, 404);
    assert.match(await response.text(), /--allow-runtime-lora-updating/);
  }
});
