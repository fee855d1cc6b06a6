// How a small tenant fares beside one with a hundred times its load: the scheduler in virtual time over recorded and made-up
// step costs, and the engine with octavo-mini. `--minutes N` sets the minutes of load in each run on the engine, `--seeds N` how many
// loads are run; `--record` measures step costs of octavo-mini, or of `--model M`, each `--repeats N` times, and prints them.
import { parseArgs } from "node:util";
import { LLM } from "@octavo/engine";
import {
  isolationCases,
  type IsolationReport,
  isolationReports,
  requestsOf,
  type TenantLoad,
  together,
} from "@octavo/engine/testing";
import { calibratedLoads, type EngineRun, type Fared, runLoad } from "./fairness/on-the-engine.js";
import { recordSteps } from "./fairness/record-steps.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, embeddedModel } from "./support/served-model.js";

const { values: flags } = parseArgs({
  options: {
    minutes: { type: "string", default: "1.5" },
    seeds: { type: "string", default: "3" },
    record: { type: "boolean", default: false },
    model: { type: "string", default: embeddedModel },
    repeats: { type: "string", default: "40" },
  },
});
const policies = ["fcfs", "priority", "fair"] as const;

/** What the fair policy is held to. */
const targets = {
  firstTokenToSolo: { atMost: 5 },
  e2eToSolo: { atMost: 2.25 },
  e2eToAggregate: { atMost: 1.5 },
  throughputToFirstCome: { atLeast: 0.93 },
} as const;

const meanings = {
  firstTokenToSolo: "p99 to first token, of solo",
  e2eToSolo: "p99 to end, of solo",
  e2eToAggregate: "p99 to end, of all requests'",
  throughputToFirstCome: "throughput, of first-come",
} as const;

type Figures = Pick<IsolationReport, keyof typeof meanings>;

function casesOf(title: string, policy: string, figures: Figures, details: object): BenchCase[] {
  return Object.entries(meanings).map(([key, meaning]) => ({
    name: `${title}, ${policy}: ${meaning}`,
    unit: "times",
    octavo: figures[key as keyof Figures],
    ...(policy === "fair" && { target: targets[key as keyof Figures] }),
    details: { ...details },
  }));
}

function percentile(fared: readonly Fared[], key: "firstTokenMs" | "e2eMs", share = 0.99): number {
  const sorted = fared.map((one) => one[key]).sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** What the loads of several seeds gave. */
class Pooled {
  readonly fared: Fared[] = [];
  #tokens = 0;
  #busyMs = 0;
  readonly busyShares: number[] = [];

  add({ fared, tokens, busyMs, busyShare }: EngineRun): void {
    this.fared.push(...fared);
    this.#tokens += tokens;
    this.#busyMs += busyMs;
    this.busyShares.push(busyShare);
  }

  get small(): readonly Fared[] {
    return this.fared.filter(({ tenant }) => tenant === "small");
  }

  get tokensPerSecond(): number {
    return (1000 * this.#tokens) / this.#busyMs;
  }
}

/** Alone, first-come and fair by turns, the order reversed with each seed, so that what drifts weighs on none of them more. */
async function pooledRuns(
  loads: Awaited<ReturnType<typeof calibratedLoads>>,
): Promise<Readonly<Record<"solo" | "fcfs" | "fair", Pooled>>> {
  const durationMs = Number(flags.minutes) * 60_000;
  const requests = (load: TenantLoad, seed: number) => requestsOf(load, durationMs, seed);
  const pooled = { solo: new Pooled(), fcfs: new Pooled(), fair: new Pooled() };
  for (let seed = 1; seed <= Number(flags.seeds); seed += 1) {
    const ofSmall = requests(loads.small, seed);
    const all = together(ofSmall, requests(loads.large, seed + 7919));
    const runs = [
      async () => pooled.solo.add(await runLoad("fcfs", ofSmall)),
      async () => pooled.fcfs.add(await runLoad("fcfs", all)),
      async () => pooled.fair.add(await runLoad("fair", all)),
    ];
    for (const run of seed % 2 === 1 ? runs : runs.toReversed()) await run();
    process.stderr.write(`seed ${seed}: ${all.length} requests, ${ofSmall.length} of the small tenant\n`);
  }
  return pooled;
}

async function onTheEngine(): Promise<BenchCase[]> {
  const loads = await calibratedLoads(0.6);
  const pooled = await pooledRuns(loads);
  const { solo } = pooled;
  return (["fcfs", "fair"] as const).flatMap((policy) => {
    const { fared, small, tokensPerSecond, busyShares } = pooled[policy];
    const figures = {
      firstTokenToSolo: percentile(small, "firstTokenMs") / percentile(solo.fared, "firstTokenMs"),
      e2eToSolo: percentile(small, "e2eMs") / percentile(solo.fared, "e2eMs"),
      e2eToAggregate: percentile(small, "e2eMs") / percentile(fared, "e2eMs"),
      throughputToFirstCome: tokensPerSecond / pooled.fcfs.tokensPerSecond,
    };
    const ofSmall = (key: "firstTokenMs" | "e2eMs") => ({
      solo: [0.5, 0.95, 0.99].map((share) => percentile(solo.fared, key, share)),
      beside: [0.5, 0.95, 0.99].map((share) => percentile(small, key, share)),
    });
    const details = {
      requestsPerMinute: [loads.small.requestsPerMinute, loads.large.requestsPerMinute],
      requests: fared.length,
      smallRequests: small.length,
      smallFirstTokenMsP50P95P99: ofSmall("firstTokenMs"),
      smallE2eMsP50P95P99: ofSmall("e2eMs"),
      tokensPerSecond,
      busyShares,
    };
    return casesOf("octavo-mini on the engine", policy, figures, details);
  });
}

function simulated(): BenchCase[] {
  return isolationCases.flatMap((isolationCase) =>
    isolationReports(isolationCase, policies).flatMap((figures) => {
      const { policy, utilization, preemptions } = figures;
      const details = { utilization, preemptions };
      return casesOf(`simulated, ${isolationCase.name}`, policy, figures, details);
    }),
  );
}

if (flags.record) {
  await using llm = await LLM.load(flags.model, {
    numThreads: 1,
    maxNumBatchedTokens: 1024,
    maxPrefillStepMs: 0,
    longPrefillTokenThreshold: 0,
    enablePrefixCaching: false,
    maxModelLen: 2048,
  });
  process.stdout.write(`${JSON.stringify(await recordSteps(llm, Number(flags.repeats)))}\n`);
} else {
  {
    await using llm = await LLM.load(embeddedModel);
    await checkAnswers(llm);
  }
  report("fairness", [...simulated(), ...(await onTheEngine())]);
}
