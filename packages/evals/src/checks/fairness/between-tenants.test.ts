import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import type { Target } from "../../targets/target.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { functionTarget } from "../../targets/function-target.js";
import { checkNamed } from "../table.js";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";

interface Treatment {
  readonly laterMs?: number;
  /** Chance of a broken answer. */
  readonly broken?: number;
  readonly refused?: number;
}

/** What each tenant gets whatever the load, with the same requests alone where `hasPeer`. */
function deployment(
  seed: number,
  treatments: Readonly<Record<string, Treatment>>,
  hasPeer = true,
): readonly Observation[] {
  const random = new Random(seed);
  const seen: Observation[] = [];
  const send = (condition: string, tenant: string, index: number): void => {
    const { laterMs = 0, broken = 0, refused = 0 } = treatments[tenant] ?? {};
    const lengthMs = 1500 + ((index * 97) % 1000);
    const durationMs = laterMs + lengthMs * Math.exp(0.05 * random.normal());
    seen.push(
      observation({
        caseId: `case-${index}`,
        condition,
        tenant,
        scheduledEpochMs: 1000 * index,
        firstTokenMs: laterMs + 100 * Math.exp(0.2 * random.normal()),
        durationMs,
        failureCode: random.uniform() < refused ? "unavailable" : undefined,
        scores: { ok: random.uniform() < broken ? 0 : 1 },
      }),
    );
  };
  for (let index = 0; index < 120; index++) {
    send("solo", "small", index);
    send("shared", "small", index);
    send("shared", "large", index);
    send("shared", "large", (index + 60) % 120);
    if (hasPeer) send("peer", "large", index);
  }
  return seen;
}

const worse: Readonly<Record<string, Treatment>> = {
  "400 ms more": { laterMs: 400 },
  "30 % broken answers": { broken: 0.3 },
  "20 % refused": { refused: 0.2 },
};

describe("tenants compared with each other", () => {
  for (const check of ["fairness", "tenant-fairness"])
    for (const [what, treatment] of Object.entries(worse))
      for (const tenant of ["small", "large"])
        it(`${check}: ${tenant} always gets ${what}`, () => {
          for (let seed = 0; seed < 5; seed++) {
            const result = checkNamed(check).judge(deployment(seed, { [tenant]: treatment }), {
              resamples: 200,
            });
            assert.equal(result.verdict, "fail", result.summary);
            const failed = result.hypotheses.filter(({ verdict }) => verdict === "fail");
            assert.ok(failed.some(({ name }) => name.startsWith(`${tenant}, both alone`)));
          }
        });

  for (const what of ["400 ms more", "30 % broken answers"])
    it(`tenant-fairness: the small one always gets ${what}, in recorded traffic where nobody sent the same alone`, () => {
      const recorded = deployment(1, { small: worse[what]! }, false);
      const result = checkNamed("tenant-fairness").judge(recorded, { resamples: 200 });
      assert.equal(result.verdict, "fail", result.summary);
    });

  it("treats equal tenants as equal in all but alpha of the runs", () => {
    let alarms = 0;
    for (let seed = 0; seed < 200; seed++) {
      const { hypotheses } = checkNamed("fairness").judge(deployment(seed, {}), { resamples: 200 });
      if (hypotheses.some(({ name, verdict }) => name.includes("both alone") && verdict === "fail")) alarms++;
    }
    assert.ok(alarms <= 0.05 * 200, `${alarms} false alarms`);
  });

  it("sends the small tenant's requests in the other's name, unless told not to", async () => {
    const tenants: string[] = [];
    const plain = functionTarget("plain", () => "answer");
    const target: Target = {
      ...plain,
      name: "plain",
      answer(evalCase, options) {
        tenants.push(options.tenant ?? "");
        return plain.answer(evalCase, options);
      },
    };
    const bed = {
      candidate: target,
      baseline: undefined,
      replicas: [],
      startReplica: undefined,
      cases: [],
      evaluators: [],
      seed: 1,
      signal: new AbortController().signal,
    };
    const cases = Array.from({ length: 3 }, (_, index) => sampleOf({ case: { id: String(index) } }).case);
    const load = {
      requests: 6,
      rounds: 2,
      small_requests_per_minute: 60_000,
      large_requests_per_minute: 0.001,
    };
    const run = async (settings: object) => {
      tenants.length = 0;
      const { observations } = await checkNamed("fairness").run({ ...bed, cases }, { ...load, ...settings });
      const peers = observations.filter(({ condition }) => condition === "peer");
      return { peers: peers.length, small: tenants.filter((tenant) => tenant === "small").length };
    };
    assert.deepEqual(await run({}), { peers: 6, small: 12 });
    assert.deepEqual(await run({ compare_tenants: false }), { peers: 0, small: 12 });
  });
});
