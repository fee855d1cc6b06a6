import { setTimeout as sleep } from "node:timers/promises";
import type { TestBed } from "../test-bed.js";
import type { EvictionBurstSettings } from "./settings.js";
import type { Observation } from "../observation.js";
import { observationFromAnswer } from "../collecting/from-answer.js";
import { CacheUsageWatch } from "./cache-usage.js";
import { collectCases, type CasePlan } from "../collecting/collect-cases.js";
import { fillerCase } from "../collecting/filler.js";

/**
 * Every case on the quiet server, once more, and then within a burst: long prompts that share nothing, so many at once that
 * they fill the pool, each replaced by a new one until all cases are answered.
 */
export async function collectBurst(
  bed: TestBed,
  settings: EvictionBurstSettings,
): Promise<readonly Observation[]> {
  const { candidate: target, cases } = bed;
  const watch = new CacheUsageWatch(target, settings.metricsIntervalMs);
  const total = 3 * cases.length;
  let before = 0;
  const pass = async (condition: string): Promise<readonly Observation[]> => {
    const plans = cases.map((evalCase): CasePlan => ({ evalCase, requests: [{ condition, target }] }));
    const { journal: _journal, ...rest } = bed;
    const observations = await collectCases(plans, {
      // what a burst does cannot be taken from another run's half
      bed: { ...rest, onProgress: ({ done }) => bed.onProgress?.({ done: before + done, total }) },
      purpose: "eviction-burst",
      concurrency: settings.concurrency,
      wantsDigests: true,
    });
    before += cases.length;
    return observations;
  };
  try {
    const quiet = [...(await pass(settings.quiet)), ...(await pass(settings.quietAgain))];
    const burst = new Burst(bed, settings);
    let inBurst: readonly Observation[];
    try {
      await burst.begin();
      inBurst = await pass(settings.burst);
    } finally {
      await burst.end();
    }
    return [...quiet, ...inBurst, ...burst.observations].map((one) => watch.laidOver(one));
  } finally {
    await watch.stop();
  }
}

/** Fillers, always as many under way, until it is ended. */
class Burst {
  readonly observations: Observation[] = [];
  readonly #bed: TestBed;
  readonly #settings: EvictionBurstSettings;
  readonly #lanes: Promise<unknown>;
  #sent = 0;
  #isOver = false;

  constructor(bed: TestBed, settings: EvictionBurstSettings) {
    this.#bed = bed;
    this.#settings = settings;
    const lane = async (): Promise<void> => {
      while (!this.#isOver && this.#sent < settings.mostFillers) await this.#sendOne();
    };
    this.#lanes = Promise.all(Array.from({ length: settings.burstInFlight }, lane));
    this.#lanes.catch(() => undefined);
  }

  /** Gives the first fillers time to take their blocks. */
  async begin(): Promise<void> {
    await Promise.race([
      sleep(this.#settings.burstLeadMs, undefined, { signal: this.#bed.signal }),
      this.#lanes,
    ]);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#lanes;
  }

  async #sendOne(): Promise<void> {
    const { burstPromptTokens, burstOutputTokens, filler } = this.#settings;
    const { candidate, seed, signal } = this.#bed;
    const evalCase = fillerCase(this.#sent++, burstPromptTokens, burstOutputTokens, seed);
    const answer = await candidate.answer(evalCase, { signal });
    this.observations.push(observationFromAnswer(answer, { condition: filler, evalCase }));
  }
}
