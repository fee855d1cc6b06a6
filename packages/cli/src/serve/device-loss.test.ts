import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "@octavo/engine";
import { createWebGpuBackend, type Gpu } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { createServer } from "@octavo/server";

const first = await openTestGpu();

/** Of the events of a stream. */
interface Chunk {
  readonly choices?: readonly { readonly text: string; readonly finish_reason: string | null }[];
  readonly error?: { readonly type: string; readonly message: string };
}

async function* eventsOf(response: Response): AsyncGenerator<Chunk> {
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += Buffer.from(bytes as Uint8Array).toString();
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events)
      if (event.startsWith("data: {")) yield JSON.parse(event.slice("data: ".length)) as Chunk;
  }
}

describe("a server whose GPU is lost", { skip: typeof first === "string" && first }, () => {
  test("goes on with the same texts on the GPU that comes back, and ends clearly when none does", async () => {
    if (typeof first === "string") return;
    let current: Gpu = first;
    let isGone = false;
    const reopen = async (): Promise<Gpu> => {
      const next = isGone ? "the driver is gone" : await openTestGpu();
      if (typeof next === "string") throw new Error(next);
      current = next;
      return next;
    };
    const warnings: string[] = [];
    using backend = createWebGpuBackend(first, { ownsGpu: true, reopen, reopenWithinMs: 200 });
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
      backend,
      maxModelLen: 64,
      onWarning: (text) => warnings.push(text),
    });
    const server = createServer({ model: llm, config: { port: 0, logLevel: "silent" } });
    const { url } = await server.listen();
    const requests = [
      { prompt: [1, 2, 3], temperature: 0 },
      { prompt: [40, 9, 7, 8], temperature: 0.9, seed: 11 },
    ];
    const complete = async (at: number, onToken?: () => void): Promise<Chunk & { readonly text: string }> => {
      const body = JSON.stringify({
        max_tokens: 8,
        ignore_eos: true,
        stream: true,
        ...requests[at],
      });
      const headers = { "content-type": "application/json" };
      let text = "";
      let last: Chunk = {};
      for await (const chunk of eventsOf(
        await fetch(`${url}/v1/completions`, { method: "POST", headers, body }),
      )) {
        last = chunk;
        text += chunk.choices?.[0]?.text ?? "";
        onToken?.();
      }
      return { ...last, text };
    };
    const metric = async (name: string): Promise<number> => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(new RegExp(`^${name}(?:\\{.*\\})? (.*)$`, "m").exec(text)?.[1] ?? Number.NaN);
    };
    try {
      const undisturbed = await Promise.all([complete(0), complete(1)]);
      assert.ok(
        undisturbed.every(({ text, choices }) => text !== "" && choices?.[0]?.finish_reason === "length"),
      );
      assert.equal(await metric("octavo:device_losses_total"), 0);

      let events = 0;
      const disturbed = await Promise.all([
        complete(0, () => {
          events += 1;
          if (events === 3) current.device.destroy();
        }),
        complete(1),
      ]);
      assert.deepEqual(
        disturbed.map(({ text, choices }) => [text, choices?.[0]?.finish_reason]),
        undisturbed.map(({ text }) => [text, "length"]),
      );
      assert.notEqual(current, first);
      assert.equal(await metric("octavo:device_losses_total"), 1);
      assert.equal(await metric("octavo:steps_failed_total"), 1);
      assert.match(
        warnings.join("\n"),
        /The GPU was lost.* is back with the weights .* 2 requests in flight/,
      );
      assert.equal((await fetch(`${url}/health`)).status, 200);

      isGone = true;
      current.device.destroy();
      const { error } = await complete(0);
      assert.equal(error?.type, "ServiceUnavailableError");
      assert.match(error?.message ?? "", /did not come back within 0\.2 s: the driver is gone/);
      const health = await fetch(`${url}/health`);
      assert.equal(health.status, 503);
      assert.match(await health.text(), /did not come back/);
      assert.equal(await metric("octavo:device_losses_total"), 1);
    } finally {
      await server.close();
    }
  });
});
