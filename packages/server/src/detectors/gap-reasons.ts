import type { StepRecord } from "@octavo/engine";
import type { AlertReason } from "./alert.js";
import { RollingSums } from "./rolling-sums.js";

/** A batch counts as grown above this multiple of the usual size. */
const growthFactor = 1.25;

/** A gap between two tokens of a sequence, in the step that ended it. */
export interface ObservedGap {
  readonly requestId: string;
  readonly tenant: string;
  readonly gapMs: number;
  readonly step: StepRecord;
  /** The sequence had no output in the step before. */
  readonly wasSkipped: boolean;
  /** The sequence was preempted since its previous output. */
  readonly wasPreempted: boolean;
}

/** Indices into the sums. */
const tokensAt = 0;
const prefillAt = 1;
const decodeAt = 2;
const hostAt = 3;
const sequencesAt = 4;
const width = 5;

interface UsualGap {
  readonly prefillMs: number;
  readonly decodeMs: number;
  readonly hostMs: number;
  readonly sequences: number;
}

/** Tracks the usual composition of gaps between tokens, and explains longer ones by comparison. */
export class GapReasons {
  readonly #usual: RollingSums;
  #means: UsualGap | undefined;

  constructor(numSlices: number) {
    this.#usual = new RollingSums(width, numSlices);
  }

  /** Adds a gap to the baseline. */
  note({ gapMs, step, wasSkipped }: ObservedGap): void {
    if (wasSkipped) return;
    this.#usual.add(tokensAt, 1);
    this.#usual.add(prefillAt, step.prefillMs);
    this.#usual.add(decodeAt, step.computeMs - step.prefillMs);
    this.#usual.add(hostAt, Math.max(0, gapMs - step.computeMs));
    this.#usual.add(sequencesAt, step.numSequences);
  }

  rotate(): void {
    this.#usual.rotate();
    this.#means = undefined;
  }

  /** Why the gap is longer than usual, and by how many ms. */
  explain(gap: ObservedGap): { readonly reason: AlertReason; readonly excessMs: number } {
    const { prefillMs, decodeMs, hostMs, sequences } = this.#usualMeans();
    const { gapMs, step } = gap;
    const excessMs = Math.max(0, gapMs - prefillMs - decodeMs - hostMs);
    if (gap.wasSkipped) return { reason: gap.wasPreempted ? "kv-eviction" : "scheduler-starve", excessMs };
    const prefill = step.prefillMs - prefillMs;
    const decode = step.computeMs - step.prefillMs - decodeMs;
    const host = gapMs - step.computeMs - hostMs;
    const most = Math.max(prefill, decode, host);
    if (most === prefill) return { reason: "prefill-burst", excessMs };
    if (most === host) return { reason: "host-stall", excessMs };
    const hasGrown = step.numSequences > growthFactor * sequences;
    return { reason: hasGrown ? "batch-growth" : "slow-compute", excessMs };
  }

  /** Computed once per slice: a mean over hours does not change within seconds. */
  #usualMeans(): UsualGap {
    if (this.#means !== undefined) return this.#means;
    const tokens = Math.max(1, this.#usual.total(tokensAt));
    this.#means = {
      prefillMs: this.#usual.total(prefillAt) / tokens,
      decodeMs: this.#usual.total(decodeAt) / tokens,
      hostMs: this.#usual.total(hostAt) / tokens,
      sequences: this.#usual.total(sequencesAt) / tokens,
    };
    return this.#means;
  }
}
