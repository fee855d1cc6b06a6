import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LLM, type LoadOptions } from "@octavo/engine";
import type { Completion } from "@octavo/protocol";
import { type OctavoMini, octavoMiniPath, startOctavoMini } from "./testing/octavo-mini.js";
import { parseExposition } from "./testing/parse-exposition.js";

const prompt =
  "The museum opens at nine and closes at five. On Mondays it stays closed. Tickets are sold at the door. ".repeat(
    4,
  );

function serve(options: LoadOptions): Promise<OctavoMini> {
  const faulty = { maxModelLen: 1024, enableFaultInjection: true, ...options };
  return startOctavoMini(faulty, { enableFaultInjection: true });
}

async function complete(url: string, octavo: object = {}): Promise<Completion> {
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      prompt,
      max_tokens: 24,
      ignore_eos: true,
      seed: 7,
      logprobs: 3,
      octavo: { include_serving_record: true, include_logits_digest: true, ...octavo },
    }),
  });
  assert.equal(response.status, 200);
  return (await response.json()) as Completion;
}

async function post(url: string, body: object): Promise<void> {
  const response = await fetch(`${url}/fault_injection`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.equal(response.status, 200, await response.text());
}

describe("octavo-mini under faults", () => {
  let served: OctavoMini;
  before(async () => {
    served = await serve({ hooks: { afterStep: (engine) => engine.checkIntegrity() } });
  });
  after(async () => {
    await served[Symbol.asyncDispose]();
  });

  it("answers the same to the last bit of its logprobs, recomputed or not", async () => {
    const { url } = served;
    const plain = await complete(url);
    const preempted = await complete(url, { faults: { preempt_at_token: [1, 7, 20] } });
    const evicted = await complete(url, { faults: { evict_at_token: [0, 5, 16] } });
    await post(url, { kind: "evict", tenant: "default", probability: 0.4, seed: 5, duration_ms: 60_000 });
    await post(url, { kind: "delay", delay_ms: 1, probability: 0.2 });
    const crowd = await Promise.all([complete(url), complete(url), complete(url)]);
    assert.equal((await fetch(`${url}/fault_injection`, { method: "DELETE" })).status, 200);
    assert.equal(plain.octavo?.logits_digests?.[0]?.length, 24);
    for (const { choices, octavo } of [preempted, evicted, ...crowd]) {
      assert.deepEqual(choices[0]?.logprobs, plain.choices[0]?.logprobs);
      assert.deepEqual(octavo?.logits_digests, plain.octavo.logits_digests);
    }
    const recordOf = ({ octavo }: Completion) => octavo!.serving_records![0]!;
    assert.equal(recordOf(preempted).preemptions, 3);
    assert.equal(recordOf(evicted).preemptions, 2);
    assert.equal(recordOf(evicted).cached_tokens, 0);
    assert(recordOf(evicted).recomputed_tokens > 2 * recordOf(preempted).recomputed_tokens);
    assert(crowd.every((answer) => recordOf(answer).preemptions > 0));
    const families = parseExposition(await (await fetch(`${url}/metrics`)).text());
    const counted = families.get("octavo:faults_injected_total")?.samples ?? [];
    const byKind = Object.fromEntries(counted.map(({ labels, value }) => [labels["kind"], value]));
    assert.equal(byKind["preempt"], 3);
    assert(byKind["evict"]! > 3 && byKind["throttle"] === 0, JSON.stringify(byKind));
  });

  it("is another model with corrupted weights, and the same one twice", async () => {
    const plain = await complete(served.url);
    const answers: unknown[] = [];
    for (const corruptWeights of [
      { seed: 1, scale: 0.05 },
      { seed: 1, scale: 0.05 },
      { seed: 2, scale: 0.05 },
      { seed: 1, scale: 0.05, pattern: "*.mlp.*" },
    ]) {
      await using corrupt = await serve({ corruptWeights });
      const answer = await complete(corrupt.url);
      answers.push(answer.choices[0]?.logprobs);
      assert.notEqual(answer.octavo?.logits_digests?.[0]?.[0], plain.octavo?.logits_digests?.[0]?.[0]);
    }
    const [first, again, otherSeed, otherWeights] = answers;
    assert.deepEqual(first, again);
    for (const answer of [otherSeed, otherWeights]) assert.notDeepEqual(answer, first);
    for (const answer of answers) assert.notDeepEqual(answer, plain.choices[0]?.logprobs);
  });

  it("is corrupted only where faults are allowed, and where there is something to corrupt", async () => {
    const corruptWeights = { seed: 1, scale: 0.1 };
    await assert.rejects(LLM.load(octavoMiniPath, { corruptWeights }), {
      code: "invalid_option",
      param: "corrupt_weights",
    });
    const pattern = "nothing.*";
    await assert.rejects(
      LLM.load(octavoMiniPath, {
        enableFaultInjection: true,
        corruptWeights: { ...corruptWeights, pattern },
      }),
      { code: "invalid_option", param: "corrupt_weights" },
    );
  });
});
