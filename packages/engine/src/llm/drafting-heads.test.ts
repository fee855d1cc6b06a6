import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { createCpuBackend } from "@octavo/kernels";
import { fixtureDrafting } from "@octavo/artifacts/testing/model-fixtures";
import { DraftingFolder, draftingNames } from "../testing/oracles/head-model.js";
import type { SpeculativeConfig } from "../speculation/speculative-config.js";
import { LLM } from "./llm.js";
import { checkHeadRuns } from "./load-head.js";
import type { LoadOptions } from "./load-options.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-heads-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const base: LoadOptions = { maxModelLen: 128, maxNumSeqs: 4, kvCacheMemoryBytes: 4 << 20, numThreads: 1 };
const model = fixtureDrafting("llama");

async function answers(path: string, speculativeConfig: SpeculativeConfig | undefined) {
  const warnings: string[] = [];
  const onWarning = (line: string): void => void warnings.push(line);
  await using llm = await LLM.load(path, { ...base, speculativeConfig, onWarning });
  let draftTokens = 0;
  llm.engine.observe({ onDraft: (drafted) => void (draftTokens += drafted) });
  const ask = async (temperature: number, prompt: string): Promise<string> => {
    const options = { temperature, maxTokens: 30, ignoreEos: true, seed: 7 };
    const result = await llm.generate(prompt, options).result();
    return result.text;
  };
  const prompts = ["the cat and the dog sat in the garden", "over and over, the end", "the cat and the dog"];
  const texts: string[] = [];
  for (const temperature of [0, 0.9])
    texts.push(...(await Promise.all(prompts.map((prompt) => ask(temperature, prompt)))));
  return { texts, draftTokens, warnings };
}

function isOfLayers(warning: string): boolean {
  return warning.includes("multi-token prediction");
}

/** The EAGLE-3 head with another configuration. */
function changed(name: string, change: Readonly<Record<string, unknown>>): SpeculativeConfig {
  const path = join(folder, name);
  cpSync(fixtureDrafting("eagle3"), path, { recursive: true });
  const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8")) as object;
  writeFileSync(join(path, "config.json"), JSON.stringify({ ...config, ...change }));
  return { method: "eagle3", model: path };
}

describe("a drafting head of a loaded model", () => {
  for (const name of draftingNames)
    test(`changes no answer: ${name}`, async () => {
      using drafting = new DraftingFolder(name);
      const plain = await answers(drafting.model, undefined);
      assert.equal(plain.draftTokens, 0);
      const { texts, draftTokens, warnings } = await answers(drafting.model, drafting.config);
      assert.deepEqual(texts, plain.texts);
      assert.ok(draftTokens > 0);
      assert.equal(plain.warnings.some(isOfLayers), drafting.config.method === "mtp");
      assert.equal(warnings.some(isOfLayers), false, "the layer is loaded");
    });

  for (const name of draftingNames)
    test(`shares what its model reads too: ${name}`, async () => {
      using drafting = new DraftingFolder(name);
      const packed: string[] = [];
      using own = createCpuBackend({ numThreads: 1 });
      const backend = new Proxy(own, {
        get: (target, key) => {
          const value: unknown = Reflect.get(target, key, target);
          if (typeof value !== "function") return value;
          return (...given: unknown[]): unknown => {
            const [sources] = given as [readonly { readonly name: string }[]];
            if (key === "createMatrix") packed.push(...sources.map((source) => source.name));
            return Reflect.apply(value, target, given);
          };
        },
      });
      const speculativeConfig = drafting.config;
      await using llm = await LLM.load(drafting.model, { ...base, backend, speculativeConfig });
      assert.ok(llm.weightBytes > 0);
      assert.equal(packed.filter((tensor) => tensor.includes("embed_tokens")).length, 1);
      assert.deepEqual(
        packed.filter((tensor, at) => packed.indexOf(tensor) !== at),
        name === "eagle3" ? ["lm_head.weight"] : [],
        "an EAGLE-3 head of a vocabulary of its own has its own output head",
      );
    });

  test("is refused by name where it was trained for another model", async () => {
    const cases: [SpeculativeConfig, RegExp][] = [
      [
        changed("wide", { target_hidden_size: 64 }),
        /trained for another model than .*: it reads hidden states of 64 columns, not 32/,
      ],
      [changed("words", { vocab_size: 300 }), /its vocabulary has 300 tokens, not 272/],
      [
        changed("llama", { architectures: ["LlamaForCausalLM"] }),
        /"LlamaForCausalLM"; an EAGLE-3 head has LlamaForCausalLMEagle3/,
      ],
      [changed("deep", { num_hidden_layers: 2 }), /has 2 layers/],
      [changed("taps", { eagle_config: null }), /reads the layers 2; three are needed, from 1 to 4/],
      [
        changed("draft", { draft_vocab_size: 100 }),
        /d2t of I64 \[160\], not I64 \[100\]|"lm_head.weight".*\[160, 32\]/,
      ],
      [{ method: "eagle3", model: join(folder, "nothing") }, /nothing/],
      [{ method: "mtp" }, /has no layer that predicts further tokens/],
    ];
    for (const [speculativeConfig, message] of cases)
      await assert.rejects(LLM.load(model, { ...base, speculativeConfig }), { message });
  });

  test("is refused by name beside what it does not go with", async () => {
    const speculativeConfig: SpeculativeConfig = { method: "eagle3", model: fixtureDrafting("eagle3") };
    const cases: [LoadOptions, RegExp][] = [
      [{ tensorParallelSize: 2 }, /do not go with tensor_parallel_size above 1/],
      [{ pipelineParallelSize: 2 }, /do not go with pipeline parallelism/],
      [{ enableSleepMode: true }, /do not go with enable_sleep_mode/],
    ];
    for (const [options, message] of cases)
      await assert.rejects(LLM.load(model, { ...base, ...options, speculativeConfig }), {
        code: "invalid_option",
        message,
      });
    const info = { name: "GPU", instructionSet: "", features: [], numThreads: 1, hasOwnMemory: true };
    assert.throws(() => checkHeadRuns({ info }), {
      message: /do not go with the device GPU; they run on the CPU/,
    });
  });
});
