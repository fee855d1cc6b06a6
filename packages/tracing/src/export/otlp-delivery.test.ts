import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type CollectorAnswer, startCollector } from "../testing/mock-collector.js";
import { OtlpDelivery } from "./otlp-delivery.js";

const hourMs = 3_600_000;

function deliveryTo(url: string, retryDelayMs = 1): OtlpDelivery {
  return new OtlpDelivery(`${url}/v1/logs`, {}, { timeoutMs: 10_000, maxAttempts: 3, retryDelayMs });
}

describe("a body for a collector", () => {
  for (const status of [408, 429, 502, 503, 504])
    it(`is sent again after ${status}, as often as is allowed`, async () => {
      await using collector = await startCollector();
      collector.answer = () => ({ status });
      const delivery = deliveryTo(collector.url);
      const reason = `the collector answered ${status}`;
      assert.deepEqual(await delivery.deliver("{}"), { taken: false, reason });
      assert.equal(collector.paths.length, 3);
      delivery.close();
    });

  for (const status of [301, 400, 401, 413, 500, 501])
    it(`is given up after ${status}`, async () => {
      await using collector = await startCollector();
      collector.answer = () => ({ status });
      const delivery = deliveryTo(collector.url);
      const reason = `the collector answered ${status}`;
      assert.deepEqual(await delivery.deliver("{}"), { taken: false, reason });
      assert.equal(collector.paths.length, 1);
      delivery.close();
    });

  const past = new Date(0).toUTCString();
  for (const retryAfter of ["0", past])
    it(`is sent again when the collector says: Retry-After: ${retryAfter}`, { timeout: 10_000 }, async () => {
      await using collector = await startCollector();
      collector.answer = (request) =>
        request === 0 ? { status: 503, headers: { "retry-after": retryAfter } } : { body: { its: "answer" } };
      const delivery = deliveryTo(collector.url, hourMs);
      assert.deepEqual(await delivery.deliver("{}"), { taken: true, text: '{"its":"answer"}' });
      delivery.close();
    });

  it(
    "waits as long as the collector says, until it is hurried or given up",
    { timeout: 10_000 },
    async () => {
      await using collector = await startCollector();
      const answered: (() => void)[] = [];
      const busy: CollectorAnswer = { status: 429, headers: { "retry-after": "30" } };
      collector.answer = () => {
        answered.shift()?.();
        return busy;
      };
      const delivery = deliveryTo(collector.url);
      const first = new Promise<void>((resolve) => answered.push(resolve));
      const second = new Promise<void>((resolve) => answered.push(resolve));
      const delivered = delivery.deliver("{}");
      await first;
      // by then the answer has come, and a delay of its own would be over
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(collector.paths.length, 1);
      delivery.hurry();
      await second;
      await new Promise((resolve) => setTimeout(resolve, 50));
      delivery.close();
      assert.deepEqual(await delivered, { taken: false, reason: "the collector answered 429" });
      assert.equal(collector.paths.length, 2);
    },
  );

  it("is not sent once it was closed", async () => {
    const delivery = deliveryTo("http://127.0.0.1:9");
    delivery.close();
    assert.deepEqual(await delivery.deliver("{}"), { taken: false, reason: "the exporter was closed" });
  });
});
