import {
  type CheckName,
  checkNamed,
  type CheckResult,
  type EvalCase,
  evaluatorTable,
  type Target,
  type TestBed,
} from "@octavo/evals";
import type { PlantedFault } from "../support/planted.js";
import type { EngineFleet } from "./engine-fleet.js";
import { goldenCases } from "./golden-cases.js";

/** A fault in a real engine that serves octavo-mini, or its absence, and the check that is to tell. */
export interface Plant extends PlantedFault {
  /** Takes tens of seconds. */
  readonly isLong?: boolean;
  /** Other cases and other randomness for every seed. */
  judge(fleet: EngineFleet, seed: number): Promise<CheckResult>;
}

const evaluators = evaluatorTable.create(["exact_match", "evaluate_function_calling"]);

interface Bed {
  readonly candidate: Target;
  readonly baseline?: Target;
  readonly replicas?: readonly Target[];
  readonly cases: readonly EvalCase[];
  readonly seed: number;
}

async function run(check: CheckName, bed: Bed, settings: object = {}): Promise<CheckResult> {
  const whole: TestBed = {
    baseline: undefined,
    replicas: [],
    startReplica: undefined,
    evaluators,
    signal: new AbortController().signal,
    ...bed,
  };
  return (await checkNamed(check).run(whole, settings)).result;
}

/** Loaded once for each fleet and kind of server. */
const served = new WeakMap<EngineFleet, Map<string, Promise<Target>>>();

function once(fleet: EngineFleet, name: string, serve: () => Promise<Target>): Promise<Target> {
  const own = served.get(fleet) ?? new Map<string, Promise<Target>>();
  served.set(fleet, own);
  const known = own.get(name) ?? serve();
  own.set(name, known);
  return known;
}

const plain = (fleet: EngineFleet, name = "plain"): Promise<Target> =>
  once(fleet, name, () => fleet.serve(name));

function rounded(fleet: EngineFleet, bits: number): Promise<Target> {
  return once(fleet, `rounded-${bits}`, async () => {
    const model = await fleet.quantised({ method: "gptq", bits, roundToNearest: true, groupSize: 128 });
    return fleet.serve(`rounded-${bits}`, {}, model);
  });
}

const mixed = (seed: number, count: number, extraction = count): Promise<readonly EvalCase[]> =>
  goldenCases(seed, [
    { task: "tools", count },
    { task: "extraction", count: extraction },
    { task: "grounded", count },
  ]);

const quantised = (bits: number): Plant => ({
  name: `weights rounded to ${bits} bits`,
  check: "quantization",
  isFaulty: true,
  isLong: bits > 2,
  judge: async (fleet, seed) =>
    run(
      "quantization",
      {
        baseline: await plain(fleet),
        candidate: await rounded(fleet, bits),
        cases: await mixed(seed, 12, bits > 2 ? 40 : 12),
        seed,
      },
      { forced: true },
    ),
});

/** Another replica with other noise for every seed; it is stopped with the fleet. */
const drifted = (fleet: EngineFleet, seed: number, scale: number): Promise<Target> =>
  once(fleet, `drifted-${seed}-${scale}`, () =>
    fleet.serve("drifted", { enableFaultInjection: true, corruptWeights: { seed, scale } }),
  );

const withFaults = (fleet: EngineFleet): Promise<Target> =>
  once(fleet, "with-faults", () => fleet.serve("with-faults", { enableFaultInjection: true }));

/** An engine that recomputes wrongly: requests whose blocks are taken away are answered by drifted weights. */
function recomputingWrongly(sound: Target, broken: Target): Target {
  return {
    name: "candidate",
    answer: (evalCase, options) => {
      const octavo = options.extraBody?.["octavo"];
      const isFaulted = typeof octavo === "object" && octavo !== null && "faults" in octavo;
      return (isFaulted ? broken : sound).answer(evalCase, options);
    },
  };
}

/** A model that loses long prompts: those above so many characters are answered by drifted weights. */
function losingLongPrompts(sound: Target, broken: Target, characters: number): Target {
  return {
    name: "candidate",
    answer: (evalCase, options) => {
      const length = evalCase.messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
      return (length > characters ? broken : sound).answer(evalCase, options);
    },
  };
}

const pool = (fleet: EngineFleet, kvCacheMemoryBytes: number): Promise<Target> =>
  once(fleet, `pool-${kvCacheMemoryBytes}`, () =>
    fleet.serve("pool", { kvCacheMemoryBytes, maxModelLen: 1024 }),
  );

const bursting = {
  burst_in_flight: 10,
  burst_prompt_tokens: 60,
  burst_output_tokens: 112,
  burst_lead_ms: 200,
};

const burst = (name: string, isFaulty: boolean, poolBytes: number): Plant => ({
  name,
  check: "eviction-burst",
  isFaulty,
  isLong: !isFaulty,
  judge: async (fleet, seed) =>
    run(
      "eviction-burst",
      {
        candidate: await pool(fleet, poolBytes),
        cases: await goldenCases(seed, [{ task: "extraction", count: 4 }]),
        seed,
      },
      bursting,
    ),
});

const tail = (name: string, isFaulty: boolean): Plant => ({
  name,
  check: "tail",
  isFaulty,
  judge: async (fleet, seed) => {
    const sound = await plain(fleet);
    const candidate = isFaulty ? losingLongPrompts(sound, await drifted(fleet, 1, 0.5), 1_500) : sound;
    const cases = await goldenCases(seed, [
      { task: "retrieval", count: 16, contextTokens: 256 },
      { task: "retrieval", count: 16, contextTokens: 1024 },
    ]);
    return run("tail", { candidate, cases, seed }, { prompt_edges: [640], output_edges: [16] });
  },
});

const skew = (name: string, scale: number | undefined): Plant => ({
  name,
  check: "replica-skew",
  isFaulty: scale !== undefined,
  judge: async (fleet, seed) => {
    const [a, b, c] = await Promise.all(["a", "b", "c"].map((one) => plain(fleet, `replica-${one}`)));
    const last = scale === undefined ? c! : await drifted(fleet, seed, scale);
    const replicas = [a!, b!, last];
    return run("replica-skew", { candidate: a!, replicas, cases: await mixed(seed, 4), seed });
  },
});

const eviction = (name: string, isFaulty: boolean): Plant => ({
  name,
  check: "eviction",
  isFaulty,
  judge: async (fleet, seed) => {
    const sound = await withFaults(fleet);
    const candidate = isFaulty ? recomputingWrongly(sound, await drifted(fleet, 1, 0.001)) : sound;
    return run("eviction", { candidate, cases: await mixed(seed, 4), seed });
  },
});

export const plants: readonly Plant[] = [
  quantised(2),
  quantised(3),
  {
    name: "the same weights twice",
    check: "quantization",
    isFaulty: false,
    isLong: true,
    judge: async (fleet, seed) =>
      run("quantization", {
        baseline: await plain(fleet),
        candidate: await plain(fleet, "plain-again"),
        cases: await mixed(seed, 8, 40),
        seed,
      }),
  },
  tail("long prompts answered by drifted weights", true),
  tail("octavo-mini as it is", false),
  eviction("blocks recomputed wrongly", true),
  eviction("blocks recomputed", false),
  burst("a pool too small for its burst", true, 4 * 2 ** 20),
  burst("a pool that holds its burst", false, 64 * 2 ** 20),
  skew("a replica with drifted weights", 0.01),
  skew("replicas alike", undefined),
];
