import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  checkNamed,
  type CheckResult,
  composedArrivals,
  type EvalCase,
  evaluatorTable,
  observationFromAnswer,
  sendOpenLoop,
  type Target,
  type TestBed,
} from "@octavo/evals";
import { Random } from "@octavo/statistics";
import type { PlantedFault } from "../support/planted.js";
import { OctavoProcesses } from "./octavo-processes.js";

/** A check's result, and what it was drawn from. */
type Judged = Awaited<ReturnType<ReturnType<typeof checkNamed>["run"]>> & {
  /** Plants in traffic only: what the check said of the same traffic without the plant. */
  readonly sound?: CheckResult;
};

/** A fault of load in `octavo serve`, or its absence, and the check that is to tell. */
export interface LoadPlant extends PlantedFault {
  /** Flags of the server that serves all seeds. */
  readonly flags: readonly string[];
  judge(target: Target, processes: OctavoProcesses, seed: number): Promise<Judged>;
}

const { signal } = new AbortController();
const words = "paper leaf folded sheet quire binding margin letter column press".split(" ");

/** Prompts of many lengths, other ones for every seed. */
function casesOf(seed: number, count: number): readonly EvalCase[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, index) => {
    const text = Array.from({ length: random.integer(20, 120) }, () => random.pick(words)).join(" ");
    return {
      id: `${seed}-${index}`,
      messages: [{ role: "user", content: `${seed} ${index}: ${text}` }],
      tools: [],
      context: undefined,
      expected: {},
      parameters: { maxTokens: 32, temperature: 0, extraBody: { min_tokens: 32 } },
      tenant: undefined,
      cluster: undefined,
      tags: [],
      metadata: {},
    };
  });
}

function bedOf(candidate: Target, seed: number, given: Partial<TestBed> = {}): TestBed {
  return {
    candidate,
    baseline: undefined,
    replicas: [],
    startReplica: undefined,
    cases: casesOf(seed, 40),
    evaluators: [],
    seed,
    signal,
    ...given,
  };
}

const tenantSettings = (largePerMinute: number) => ({
  requests: 40,
  rounds: 1,
  small_requests_per_minute: 600,
  large_requests_per_minute: largePerMinute,
  large_prompt_tokens: largePerMinute > 1000 ? 250 : 0,
  large_output_tokens: 48,
});

const tenants = (name: string, isFaulty: boolean, largePerMinute: number, policy: string): LoadPlant => ({
  name,
  check: "fairness",
  isFaulty,
  flags: ["--scheduling-policy", policy, "--max-num-seqs", "32"],
  judge: (target, _, seed) => checkNamed("fairness").run(bedOf(target, seed), tenantSettings(largePerMinute)),
});

const replicaFlags = ["--scheduling-policy", "fcfs", "--max-num-seqs", "16"];

const cluster = (name: string, isFaulty: boolean, largePerMinute: number): LoadPlant => ({
  name,
  check: "tenant-fairness",
  isFaulty,
  flags: replicaFlags,
  judge: async (target, processes, seed) => {
    const bed = bedOf(target, seed, { replicas: [target, await replicaBeside(processes)] });
    return checkNamed("tenant-fairness").run(bed, tenantSettings(largePerMinute));
  },
});

const beside = new WeakMap<OctavoProcesses, Promise<Target>>();

function replicaBeside(processes: OctavoProcesses): Promise<Target> {
  const known = beside.get(processes) ?? processes.serve("beside", replicaFlags);
  beside.set(processes, known);
  return known;
}

const jitter = (
  name: string,
  isFaulty: boolean,
  burstPrompts: number,
  flags: readonly string[],
): LoadPlant => ({
  name,
  check: "jitter",
  isFaulty,
  flags,
  judge: (target, _, seed) =>
    checkNamed("jitter").run(bedOf(target, seed), {
      rounds: 6,
      replays: 3,
      burst_prompts: burstPrompts,
      burst_prompt_tokens: 1000,
      slice_ms: 20,
      full_slice: 8,
    }),
});

const scaleUp = (name: string, isFaulty: boolean, perSecond: number, delaySeconds: number): LoadPlant => ({
  name,
  check: "autoscaling-lag",
  isFaulty,
  // one sequence at a time: what a replica can do does not depend on how the machine is today
  flags: ["--max-num-seqs", "1"],
  judge: async (target, _, seed) => {
    await using own = new OctavoProcesses();
    const flags = ["--enable-fault-injection", "--fault-start-delay", String(delaySeconds)];
    const bed = bedOf(target, seed, {
      startReplica: () => own.start("late", [...flags, "--max-num-seqs", "1"]),
      evaluators: evaluatorTable.create(["is_json"]),
    });
    return await checkNamed("autoscaling-lag").run(bed, {
      idle_requests_per_second: 20,
      burst_requests_per_second: perSecond,
    });
  },
});

/** Production as its spans have it, and an evaluation that sends the like of it or something else. */
const drift = (name: string, isFaulty: boolean): LoadPlant => ({
  name,
  check: "traffic-drift",
  isFaulty,
  flags: [],
  judge: async (_target, _processes, seed) => {
    await using own = new OctavoProcesses();
    const folder = await mkdtemp(join(tmpdir(), "octavo-drift-"));
    try {
      const target = await own.serve("traced", ["--trace-store", folder]);
      const bed = bedOf(target, seed);
      const loads = [
        { tenant: "many", requestsPerMinute: 1500, burstiness: 0.3 },
        { tenant: "few", requestsPerMinute: 500, burstiness: 1 },
      ];
      const production = composedArrivals(loads, 5000, new Random(seed)).map(({ tenant, atMs }, index) => ({
        evalCase: bed.cases[index % bed.cases.length]!,
        atMs,
        tenant,
      }));
      await sendOpenLoop(target, production, { signal });
      await sleep(1500);
      const file = (await readdir(folder)).find((one) => one.endsWith(".jsonl")) ?? "";
      const settings = {
        recording: join(folder, file),
        length_margin: 0.5,
        tenant_margin: 0.3,
        dispersion_margin: 4,
      };
      const check = checkNamed("traffic-drift");
      const replayed = await check.run(bed, settings);
      if (!isFaulty) return replayed;
      const even = Array.from({ length: 40 }, (_case, index) => ({
        evalCase: { ...bed.cases[0]!, parameters: { maxTokens: 4, temperature: 0 } },
        atMs: 100 * index,
        tenant: "few",
      }));
      const evaluation = (await sendOpenLoop(target, even, { signal })).map(({ answer, scheduled }) =>
        observationFromAnswer(answer, { condition: "evaluation", ...scheduled }),
      );
      const kept = replayed.observations.filter(({ condition }) => condition === "production");
      const observations = [...kept, ...evaluation];
      return { observations, result: check.judge(observations, settings), sound: replayed.result };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
});

const unbounded = ["--max-num-batched-tokens", "8192", "--max-prefill-step-ms", "0"];

export const loadPlants: readonly LoadPlant[] = [
  tenants("a small tenant behind a large one, first come first served", true, 6000, "fcfs"),
  jitter("long prompts in steps without a bound", true, 4, unbounded),
  scaleUp("a replica that starts two seconds late, under a burst", true, 80, 2),
  drift("short answers for one tenant, evenly, instead of production's mix", true),
  cluster("a small tenant behind a large one, on two replicas", true, 9000),
  tenants("a large tenant that sends next to nothing", false, 60, "fair"),
  jitter("streams alone", false, 0, []),
  scaleUp("a burst that one replica can take", false, 8, 0),
  drift("production's own spans replayed", false),
  cluster("a large tenant that sends next to nothing, on two replicas", false, 60),
];
