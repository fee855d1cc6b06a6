import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { OctavoError } from "@octavo/protocol/errors";
import { createTokenizer } from "./create-tokenizer.js";
import {
  fixtureNames,
  hostileTexts,
  plainConfig,
  readFixture,
  type FixtureName,
} from "./testing/contenders.js";
import type { Tokenizer } from "./tokenizer.js";

function load(name: FixtureName): Tokenizer {
  return createTokenizer({
    kind: "tokenizer.json",
    json: JSON.parse(readFixture(name)) as unknown,
    config: plainConfig,
  });
}

const longText = hostileTexts.join("\n").repeat(4);

describe("encodeAsync", () => {
  it("gives what encode gives, for long and short texts", async () => {
    assert.ok(longText.length > 50_000);
    for (const name of fixtureNames) {
      const tokenizer = load(name);
      for (const addSpecialTokens of [true, false]) {
        assert.deepEqual(
          await tokenizer.encodeAsync(longText, { addSpecialTokens }),
          tokenizer.encode(longText, { addSpecialTokens }),
          name,
        );
      }
      assert.deepEqual(await tokenizer.encodeAsync("short"), tokenizer.encode("short"));
    }
  });

  it("leaves the event loop free", async () => {
    const tokenizer = load("llama3");
    let turns = 0;
    const counter = setInterval(() => turns++, 0);
    await tokenizer.encodeAsync(longText.repeat(8));
    clearInterval(counter);
    assert.ok(turns > 0);
  });

  it("keeps many texts apart", async () => {
    const tokenizer = load("qwen2");
    const texts = Array.from({ length: 8 }, (_, index) => `${index} `.repeat(5000 + index));
    const results = await Promise.all(texts.map((text) => tokenizer.encodeAsync(text)));
    for (const [index, text] of texts.entries()) assert.deepEqual(results[index], tokenizer.encode(text));
  });

  it("passes failures on and works afterwards", async () => {
    const json = {
      model: { type: "Unigram", vocab: [["a", -1]] },
      pre_tokenizer: { type: "WhitespaceSplit" },
    };
    const tokenizer = createTokenizer({ kind: "tokenizer.json", json, config: plainConfig });
    const hasNoToken = (error: unknown): boolean =>
      error instanceof OctavoError &&
      error.code === "invalid_request" &&
      /no token for "x"/.test(error.message);
    assert.throws(() => tokenizer.encode("x"), hasNoToken);
    await assert.rejects(tokenizer.encodeAsync("a ".repeat(9000) + "x"), hasNoToken);
    assert.equal((await tokenizer.encodeAsync("a ".repeat(9000))).length, 9000);
  });

  it("gives up when it is told to, and goes on with the next text", async () => {
    const tokenizer = load("gpt2");
    const isCancelled = (error: unknown): boolean =>
      error instanceof OctavoError && error.code === "request_cancelled";
    await assert.rejects(tokenizer.encodeAsync(longText, { signal: AbortSignal.abort() }), isCancelled);
    const controller = new AbortController();
    const pending = tokenizer.encodeAsync(longText, { signal: controller.signal });
    controller.abort();
    await assert.rejects(pending, isCancelled);
    assert.deepEqual(await tokenizer.encodeAsync(longText), tokenizer.encode(longText));
  });

  it("takes the shortest of the texts that wait, and none that were given up", async () => {
    const tokenizer = load("gpt2");
    const done: string[] = [];
    const encode = async (name: string, text: string, signal?: AbortSignal): Promise<void> => {
      await tokenizer.encodeAsync(text, signal === undefined ? {} : { signal });
      done.push(name);
    };
    const controller = new AbortController();
    const first = encode("first", longText);
    const given = encode("given up", longText.repeat(2), controller.signal);
    const rest = [encode("long", longText.repeat(3)), encode("short", longText.slice(0, 20_000))];
    controller.abort();
    await assert.rejects(given, { code: "request_cancelled" });
    await Promise.all([first, ...rest]);
    assert.deepEqual(done, ["first", "short", "long"]);
  });

  it("takes texts of tenants in turn", async () => {
    const tokenizer = load("gpt2");
    const done: string[] = [];
    const encode = async (tenant: string, length: number): Promise<void> => {
      await tokenizer.encodeAsync(longText.slice(0, length), { tenant });
      done.push(`${tenant} ${length}`);
    };
    const loud = [30_000, 10_000, 10_001, 10_002, 10_003].map((length) => encode("loud", length));
    await Promise.all([...loud, encode("quiet", 50_000), encode("other", 40_000)]);
    const [first, ...rest] = ["loud 30000", "other 40000", "quiet 50000", "loud 10000"];
    assert.deepEqual(done.slice(0, 4), [first, ...rest]);
  });

  it("does not finish a very long text that nobody waits for", async () => {
    const tokenizer = load("gpt2");
    const controller = new AbortController();
    const done: string[] = [];
    const abandoned = tokenizer.encodeAsync("word ".repeat(4_000_000), { signal: controller.signal });
    const next = tokenizer.encodeAsync(longText).then(() => done.push("next"));
    const ended = assert.rejects(abandoned, { code: "request_cancelled" }).then(() => done.push("abandoned"));
    controller.abort();
    await Promise.all([next, ended]);
    assert.deepEqual(done, ["abandoned", "next"]);
  });

  it("stops a long text that has more tokens than are accepted", async () => {
    for (const name of fixtureNames) {
      const tokenizer = load(name);
      const { length } = tokenizer.encode(longText);
      assert.equal((await tokenizer.encodeAsync(longText, { maxTokens: length })).length, length, name);
      await assert.rejects(tokenizer.encodeAsync(longText, { maxTokens: length - 1 }), {
        code: "context_length_exceeded",
        message: new RegExp(`has at least ${length} tokens; at most ${length - 1} `),
      });
      const hopeless = tokenizer.encodeAsync("x ".repeat(100_000), { maxTokens: 10 });
      await assert.rejects(hopeless, { code: "context_length_exceeded" });
    }
  });

  it("disposed, fails what it has and starts again for the next text", async () => {
    const tokenizer = load("gpt2");
    tokenizer[Symbol.dispose]?.();
    const texts = [tokenizer.encodeAsync(longText), tokenizer.encodeAsync(longText)];
    tokenizer[Symbol.dispose]?.();
    for (const text of texts) await assert.rejects(text, { code: "shutting_down" });
    assert.deepEqual(await tokenizer.encodeAsync(longText), tokenizer.encode(longText));
  });

  it("does not keep the process alive when it is idle, and does while it works", async () => {
    const script = `
      import { createTokenizer } from ${JSON.stringify(new URL("./create-tokenizer.js", import.meta.url).href)};
      const json = { model: { type: "BPE", vocab: { a: 0 }, merges: [] } };
      const config = { namedChatTemplates: new Map() };
      const tokenizer = createTokenizer({ kind: "tokenizer.json", json, config });
      tokenizer.encodeAsync("a".repeat(20000)).then((ids) => process.stdout.write(String(ids.length)));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
    assert.equal(stdout, "20000");
  });
});
