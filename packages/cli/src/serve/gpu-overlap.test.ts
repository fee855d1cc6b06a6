import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "@octavo/engine";
import type { Backend } from "@octavo/kernels";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { createServer } from "@octavo/server";

const gpu = await openTestGpu();

/** The backend, but results of steps wait for `held`, once their commands are submitted. */
function holding(backend: Backend, held: () => Promise<void> | undefined): Backend {
  return new Proxy(backend, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      if (key !== "execute") return value.bind(target) as unknown;
      return async (...args: Parameters<Backend["execute"]>) => {
        const result = target.execute(...args);
        await held();
        return result;
      };
    },
  });
}

class Gate {
  open = (): void => {};
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}

const body = (fields: object): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(fields),
});

/** Each wait below would last for ever where one side waited for the other. */
describe("a model that decodes on a GPU", { skip: typeof gpu === "string" && gpu }, () => {
  test("lets HTTP requests be answered while a step is under way", async () => {
    if (typeof gpu === "string") return;
    let steps = 0;
    let isHeld = false;
    const [gate, reached] = [new Gate(), new Gate()];
    const held = (): Promise<void> | undefined => {
      steps += 1;
      if (!isHeld || steps < 3) return undefined;
      reached.open();
      return gate.opened;
    };
    const backend = holding(createWebGpuBackend(gpu), held);
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), { backend, maxModelLen: 64 });
    const server = createServer({ model: llm, config: { port: 0, logLevel: "silent" } });
    const { url } = await server.listen();
    try {
      const request = body({ prompt: [1, 2, 3], temperature: 0, max_tokens: 6, ignore_eos: true });
      const complete = async (): Promise<unknown> =>
        ((await (await fetch(`${url}/v1/completions`, request)).json()) as { choices: unknown }).choices;
      const expected = await complete();
      isHeld = true;
      steps = 0;
      const answer = complete();
      await reached.opened;
      const { submits } = gpu.counters;
      assert.equal((await fetch(`${url}/health`)).status, 200);
      const counted = await fetch(`${url}/tokenize`, body({ prompt: "of many words ".repeat(4000) }));
      assert.ok(((await counted.json()) as { count: number }).count > 1000);
      assert.equal(gpu.counters.submits, submits, "a step was submitted while one was held");
      gate.open();
      assert.deepEqual(await answer, expected);
    } finally {
      gate.open();
      await server.close();
    }
  });

  test("goes on while a text is tokenised and a grammar compiled for others", async () => {
    if (typeof gpu === "string") return;
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
      backend: createWebGpuBackend(gpu),
      maxModelLen: 64,
    });
    const greedy = { temperature: 0, maxTokens: 8, ignoreEos: true } as const;
    const constraint = { kind: "regex", pattern: "[a-z]{3}" } as const;
    const prompt = Int32Array.of(1, 2, 3);
    const tokensOf = async (generation: PromiseLike<{ sequences: readonly { tokens: unknown }[] }>) =>
      (await generation).sequences.map(({ tokens }) => tokens);
    const alone = await tokensOf(llm.generate(prompt, greedy));
    const others = () => [
      tokensOf(llm.generate("a text", greedy)),
      tokensOf(llm.generate(prompt, { ...greedy, ignoreEos: false, constraint })),
    ];
    const expected = await Promise.all(others());

    const gate = new Gate();
    let waiting = 0;
    const hold = <T extends object>(target: T, key: keyof T): void => {
      const own = target[key] as (...args: unknown[]) => unknown;
      Object.defineProperty(target, key, {
        configurable: true,
        value: async (...args: unknown[]) => {
          waiting += 1;
          await gate.opened;
          return Reflect.apply(own, target, args);
        },
      });
    };
    hold(llm.tokenizer, "encodeAsync");
    hold(llm.engine, "compileGrammar");
    const held = others();
    const { submits } = gpu.counters;
    assert.deepEqual(await tokensOf(llm.generate(prompt, greedy)), alone);
    assert.equal(waiting, 2, "nothing was tokenised or compiled meanwhile");
    assert.equal(gpu.counters.submits - submits, greedy.maxTokens);
    gate.open();
    assert.deepEqual(await Promise.all(held), expected);
  });
});
