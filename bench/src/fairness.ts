// How a small tenant fares beside one with a hundred times its load: the scheduler in virtual time,
// and the engine. `--record` measures step costs and prints them; `--minutes N` sets how long each run on the engine takes.
import { LLM } from "@octavo/engine";
import { isolationCases, type IsolationReport, isolationReports } from "@octavo/engine/testing";
import { bothOf, calibratedLoads, type Fared, runLoad } from "./fairness/on-the-engine.js";
import { recordSteps } from "./fairness/record-steps.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, embeddedModel } from "./support/served-model.js";

const args = process.argv.slice(2);
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

function p99(fared: readonly Fared[], key: "firstTokenMs" | "e2eMs"): number {
  const sorted = fared.map((one) => one[key]).sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(0.99 * sorted.length) - 1)] ?? Number.NaN;
}

async function onTheEngine(minutes: number): Promise<BenchCase[]> {
  const loads = await calibratedLoads(0.6);
  const { ofSmall, all } = bothOf(loads, minutes * 60_000);
  const solo = await runLoad("fcfs", ofSmall);
  const firstCome = await runLoad("fcfs", all);
  const cases: BenchCase[] = [];
  for (const policy of ["fcfs", "fair"] as const) {
    const run = policy === "fcfs" ? firstCome : await runLoad(policy, all);
    const small = run.fared.filter(({ tenant }) => tenant === "small");
    const figures = {
      firstTokenToSolo: p99(small, "firstTokenMs") / p99(solo.fared, "firstTokenMs"),
      e2eToSolo: p99(small, "e2eMs") / p99(solo.fared, "e2eMs"),
      e2eToAggregate: p99(small, "e2eMs") / p99(run.fared, "e2eMs"),
      throughputToFirstCome: run.tokensPerBusySecond / firstCome.tokensPerBusySecond,
    };
    const details = {
      requestsPerMinute: [loads.small.requestsPerMinute, loads.large.requestsPerMinute],
      smallRequests: small.length,
      busyShare: run.busyShare,
    };
    cases.push(...casesOf("octavo-mini on the engine", policy, figures, details));
  }
  return cases;
}

if (args.includes("--record")) {
  const model = args[args.indexOf("--record") + 1] ?? embeddedModel;
  await using llm = await LLM.load(model, {
    numThreads: 1,
    maxNumBatchedTokens: 1024,
    maxPrefillStepMs: 0,
    longPrefillTokenThreshold: 0,
    enablePrefixCaching: false,
    maxModelLen: 2048,
  });
  process.stdout.write(`${JSON.stringify(await recordSteps(llm, model, 40))}\n`);
} else {
  const cases: BenchCase[] = [];
  for (const isolationCase of isolationCases) {
    for (const figures of isolationReports(isolationCase, policies)) {
      const { policy, utilization, preemptions } = figures;
      cases.push(
        ...casesOf(`simulated, ${isolationCase.name}`, policy, figures, { utilization, preemptions }),
      );
    }
  }
  const minutes = Number(args[args.indexOf("--minutes") + 1] ?? Number.NaN);
  {
    await using llm = await LLM.load(embeddedModel);
    await checkAnswers(llm);
  }
  cases.push(...(await onTheEngine(args.includes("--minutes") ? minutes : 5)));
  report("fairness", cases);
}
