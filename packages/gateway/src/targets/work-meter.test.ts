import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeTarget } from "../testing/fake-target.js";
import { readTestConfig, sampleBody, startTestGateway } from "../testing/test-gateway.js";
import { WorkMeter } from "./work-meter.js";

describe("what a target's work costs", () => {
  it("calls at the same time share the time in which the target was busy", () => {
    const alone = new WorkMeter();
    const shared = new WorkMeter();
    let now = 0;
    for (let round = 0; round < 400; round += 1) {
      alone.begin(now);
      alone.end(now + 100, 50);
      for (let call = 0; call < 4; call += 1) shared.begin(now);
      for (let call = 0; call < 4; call += 1) shared.end(now + 100, 50);
      now += 1000;
    }
    const near = (value: number | undefined, wanted: number): void =>
      assert.ok(value !== undefined && Math.abs(value / wanted - 1) < 0.02, `${value}, wanted ${wanted}`);
    near(alone.msPerToken, 2);
    near(shared.msPerToken, 0.5);
    for (let round = 0; round < 2000; round += 1) {
      alone.begin(now);
      alone.end(now + 300, 50);
      now += 1000;
    }
    near(alone.msPerToken, 6);
  });

  it("says nothing before it was measured, and nothing of calls without tokens", () => {
    const meter = new WorkMeter();
    for (let call = 0; call < 100; call += 1) {
      meter.begin(call);
      meter.end(call + 1, 0);
    }
    assert.equal(meter.msPerToken, undefined);
  });

  it("cost_optimised goes where a second's price and the measured seconds make the call cheapest", async () => {
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
    await using slow = await FakeTarget.start({ kind: "answer", usage });
    await using quick = await FakeTarget.start({ kind: "answer", usage });
    const target = (url: string, second: number) => ({
      provider: "openai-compatible",
      url,
      models: { m: { gpu_second: second } },
    });
    // a second costs twice as much where a call takes a twentieth of the time
    await using gateway = await startTestGateway({
      targets: { cheap: target(slow.url, 0.001), dear: target(quick.url, 0.002) },
      routes: { all: { models: ["m"], strategy: "cost_optimised", targets: ["cheap", "dear"] } },
    });
    const call = async (): Promise<string | null> =>
      (await gateway.post("/v1/chat/completions", sampleBody)).headers.get("x-octavo-target");
    const { targets } = gateway.gateway.runtime;
    const [cheap, dear] = [targets.get("cheap")?.work, targets.get("dear")?.work];
    const measured = (work: WorkMeter | undefined, calls: number, callMs: number): void => {
      for (let now = 0; now < calls; now += 1) {
        work?.begin(now * 10_000);
        work?.end(now * 10_000 + callMs, 20);
      }
    };
    measured(cheap, 20, 4000);
    assert.equal(await call(), "dear", "what was not measured is measured first");
    measured(dear, 20, 200);
    assert.equal(await call(), "dear");
    measured(dear, 4000, 20_000);
    assert.equal(await call(), "cheap");
    const before = cheap?.msPerToken ?? 0;
    for (let calls = 0; calls < 10; calls += 1) await call();
    assert.ok((cheap?.msPerToken ?? 0) < before, "real calls are measured too");
  });

  it("is given in one way", () => {
    const config = (model: object) => () =>
      readTestConfig({
        targets: { a: { provider: "vllm", url: "http://127.0.0.1:1", models: { m: model } } },
      });
    assert.throws(config({ gpu_second: 1, input: 1 }), { code: "invalid_option", message: /gpu_second/ });
    assert.throws(config({ gpu_second: -1 }), { code: "invalid_option" });
  });
});
