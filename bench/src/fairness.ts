// How a small tenant fares beside one with a hundred times its load: the scheduler in virtual time over recorded and made-up
// step costs, and the engine with octavo-mini and with a model of stories42M's shape (random weights), or with `--model M` alone.
// `--requests N` sets how many requests of small tenants there are on the engine, over `--seeds N` loads; `--record` measures step
// costs of octavo-mini, or of `--model M`, each `--repeats N` times, and prints them.
import { basename } from "node:path";
import { parseArgs } from "node:util";
import { LLM } from "@octavo/engine";
import { isolationCases, type IsolationReport, isolationReports } from "@octavo/engine/testing";
import { defaultModelFolder, modelFile } from "./cpu/models/model-file.js";
import {
  calibratedRate,
  type EngineCase,
  type EngineRun,
  type Fared,
  isSmall,
  loadsOf,
  runLoads,
} from "./fairness/on-the-engine.js";
import { recordSteps } from "./fairness/record-steps.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, embeddedModel } from "./support/served-model.js";

const { values: flags } = parseArgs({
  options: {
    requests: { type: "string", default: "165" },
    seeds: { type: "string", default: "5" },
    record: { type: "boolean", default: false },
    model: { type: "string" },
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

/**
 * octavo-mini, of whose steps, fractions of a millisecond, what goes on around computing is a good part; and a model that takes ten
 * times as long. A larger one would take hours: a request of a small tenant comes with a hundred of the large one.
 */
function engineCases(): readonly EngineCase[] {
  const mini = {
    name: "octavo-mini",
    model: embeddedModel,
    promptTokens: 250,
    outputTokens: 48,
    smallTenants: 1,
  };
  const slower = { promptTokens: 128, outputTokens: 32, smallTenants: 4 };
  if (flags.model === "octavo-mini") return [mini];
  if (flags.model !== undefined) return [{ name: basename(flags.model), model: flags.model, ...slower }];
  const { path } = modelFile(defaultModelFolder(), "stories-42m", "q4_0");
  return [mini, { name: "42 million weights in Q4_0", model: path, ...slower }];
}

/** What the loads of several seeds gave. */
class Pooled {
  readonly fared: Fared[] = [];
  #tokens = 0;
  #busyMs = 0;
  readonly busyShares: number[] = [];

  add(runs: readonly EngineRun[]): void {
    for (const { fared, tokens, busyMs, busyShare } of runs) {
      this.fared.push(...fared);
      this.#tokens += tokens;
      this.#busyMs += busyMs;
      this.busyShares.push(busyShare);
    }
  }

  get small(): readonly Fared[] {
    return this.fared.filter(isSmall);
  }

  get tokensPerSecond(): number {
    return (1000 * this.#tokens) / this.#busyMs;
  }
}

/** Alone, first-come and fair by turns, the order reversed with each seed, so that what drifts weighs on none of them more. */
async function pooledRuns(
  engineCase: EngineCase,
  rate: number,
): Promise<Readonly<Record<"solo" | "fcfs" | "fair", Pooled>>> {
  const pooled = { solo: new Pooled(), fcfs: new Pooled(), fair: new Pooled() };
  const seeds = Number(flags.seeds);
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { small, all } = loadsOf(engineCase, rate, Number(flags.requests) / seeds, seed);
    const runs = [
      async () => pooled.solo.add(await runLoads(engineCase, "fcfs", small)),
      async () => pooled.fcfs.add(await runLoads(engineCase, "fcfs", [all])),
      async () => pooled.fair.add(await runLoads(engineCase, "fair", [all])),
    ];
    for (const run of seed % 2 === 1 ? runs : runs.toReversed()) await run();
    const numSmall = small.reduce((sum, { length }) => sum + length, 0);
    process.stderr.write(
      `${engineCase.name}, seed ${seed}: ${all.length} requests, ${numSmall} of small tenants\n`,
    );
  }
  return pooled;
}

async function onTheEngine(engineCase: EngineCase): Promise<BenchCase[]> {
  const { name, promptTokens, outputTokens, smallTenants } = engineCase;
  const rate = await calibratedRate(engineCase, 0.6);
  const pooled = await pooledRuns(engineCase, rate);
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
      smallTenants,
      requestsPerMinute: [rate, 100 * rate],
      promptTokens,
      outputTokens,
      requests: fared.length,
      smallRequests: small.length,
      smallFirstTokenMsP50P95P99: ofSmall("firstTokenMs"),
      smallE2eMsP50P95P99: ofSmall("e2eMs"),
      tokensPerSecond,
      busyShares,
    };
    return casesOf(`${name} on the engine`, policy, figures, details);
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
  await using llm = await LLM.load(flags.model ?? embeddedModel, {
    numThreads: 1,
    maxNumBatchedTokens: 1024,
    maxPrefillStepMs: 0,
    longPrefillTokenThreshold: 0,
    enablePrefixCaching: false,
    maxModelLen: 2048,
  });
  await llm.packed;
  process.stdout.write(`${JSON.stringify(await recordSteps(llm, Number(flags.repeats)))}\n`);
} else {
  {
    await using llm = await LLM.load(embeddedModel);
    await checkAnswers(llm);
  }
  const cases = simulated();
  for (const engineCase of engineCases()) cases.push(...(await onTheEngine(engineCase)));
  report("fairness", cases);
}
