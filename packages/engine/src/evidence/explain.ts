import type { IntList } from "../kv-cache/int-list.js";
import {
  type Explanation,
  ExplanationBuilder,
  type ExplanationPart,
  type RequestName,
  type SlowGap,
} from "./explanation.js";
import type { RequestTimeline, SequenceTimeline } from "./request-timeline.js";
import type { LoggedStep, StepLog } from "./step-log.js";

/** A gap is slow above this multiple of the sequence's median gap... */
const slowFactor = 2;
/** ...if the excess is also above this, the noise of clocks and timers. */
const minExcessMs = 1;
/** Gaps that a sequence must have for a median. */
const minGaps = 5;
/** A batch counts as grown above this multiple of the usual size. */
const growthFactor = 1.25;
const maxSlowGaps = 16;

/** Explains a request's slow tokens by the logged steps that they waited for. */
export class Explainer {
  readonly #log: StepLog;
  readonly #nameOf: (order: number) => RequestName;
  readonly #msPerPromptToken: number | undefined;
  readonly #usualBatches = new Map<SequenceTimeline, number>();

  constructor(log: StepLog, nameOf: (order: number) => RequestName) {
    this.#log = log;
    this.#nameOf = nameOf;
    this.#msPerPromptToken = log.msPerPromptToken;
  }

  /** Where the time to the first token went; undefined before the first token. */
  firstToken(timeline: RequestTimeline, numUncachedTokens: number): Explanation | undefined {
    const { arrivalMs, queuedMs, admittedMs, firstTokenMs, grammarMs, order } = timeline;
    const firstStep = timeline.sequences[0]?.steps.length ? timeline.sequences[0].steps.at(0) : undefined;
    if (firstTokenMs === undefined || admittedMs === undefined || firstStep === undefined) return undefined;
    const builder = new ExplanationBuilder();
    const preparedMs = queuedMs - arrivalMs;
    const grammar = Math.min(grammarMs, preparedMs);
    builder.add("grammar", grammar);
    builder.add("preparation", preparedMs - grammar);
    builder.add("queue", admittedMs - queuedMs);
    for (const { shares } of this.#log.between(queuedMs, admittedMs)) {
      for (const { order: other, ms, tokens } of shares)
        if (other !== order) builder.blame("queue", other, ms, tokens);
    }
    const evicted = Math.min(1, timeline.evictedPrefixTokens / Math.max(1, numUncachedTokens));
    for (const step of this.#log.between(admittedMs, firstTokenMs)) {
      if (step.step > firstStep) break;
      const own = step.shares.filter((share) => share.order === order);
      if (own.length === 0) {
        addAbsence(builder, step);
        continue;
      }
      this.#addStep(builder, step, order);
      for (const { ms, tokens } of own) {
        builder.add("prefill", ms * (1 - evicted), Math.round(tokens * (1 - evicted)));
        if (evicted > 0) builder.add("eviction", ms * evicted, Math.round(tokens * evicted));
      }
    }
    return builder.build(firstTokenMs - arrivalMs, "host", this.#nameOf);
  }

  /** The slowest gaps of all sequences, slowest first; at most 16. */
  slowGaps(timeline: RequestTimeline): readonly SlowGap[] {
    const slow: { sequence: number; output: number; excess: number; usualMs: number }[] = [];
    for (const [sequence, { gaps }] of timeline.sequences.entries()) {
      if (gaps.length < minGaps) continue;
      const usualMs = gaps.sorted()[Math.floor((gaps.length - 1) / 2)]!;
      for (let gap = 0; gap < gaps.length; gap += 1) {
        const excess = gaps.at(gap) - usualMs;
        if (gaps.at(gap) > usualMs * slowFactor && excess > minExcessMs)
          slow.push({ sequence, output: gap + 1, excess, usualMs });
      }
    }
    slow.sort((a, b) => b.excess - a.excess);
    return slow
      .slice(0, maxSlowGaps)
      .map(({ sequence, output, usualMs }) => this.#gap(timeline, sequence, output, usualMs));
  }

  #gap(timeline: RequestTimeline, sequence: number, output: number, usualMs: number): SlowGap {
    const own = timeline.sequences[sequence]!;
    const { steps, gaps } = own;
    const ms = gaps.at(output - 1);
    const builder = new ExplanationBuilder();
    let batchSize = 0;
    for (let number = steps.at(output - 1) + 1; number <= steps.at(output); number += 1) {
      const step = this.#log.at(number);
      if (step === undefined) {
        builder.add("forgotten", Math.max(0, ms - builder.msOf("preemption")));
        break;
      }
      const ran = step.shares.find((share) => share.order === timeline.order && share.sequence === sequence);
      if (ran === undefined) {
        this.#addWait(builder, timeline, sequence, step);
        continue;
      }
      batchSize = Math.max(batchSize, step.shares.length);
      this.#addStep(builder, step, timeline.order, sequence);
      // A sequence with output has prefill only after a preemption.
      if (ran.isPrefill) builder.add("preemption", ran.ms, ran.tokens);
      else builder.add("decode", ran.ms);
    }
    const decodeExcess = builder.msOf("decode") - usualMs;
    if (decodeExcess > 0) {
      const grown = batchSize > growthFactor * this.#usualBatch(own);
      builder.move("decode", grown ? "batch_growth" : "slow_compute", decodeExcess);
    }
    const explanation = builder.build(ms, "host", this.#nameOf, (part: ExplanationPart) =>
      part.cause === "decode" ? 0 : part.ms,
    );
    return { sequence, output, step: steps.at(output), usualMs, ...explanation };
  }

  /**
   * Adds the other sequences' part of a step in which the sequence ran. Steps are shared out by arithmetic, but a short prompt
   * beside a few generating sequences costs less than its share, since all wait for the same weights: prompts are not
   * charged more than twice what their tokens take in steps full of them.
   */
  #addStep(builder: ExplanationBuilder, step: LoggedStep, order: number, sequence?: number): void {
    const others = step.shares.filter(
      (share) => share.order !== order || (sequence !== undefined && share.sequence !== sequence),
    );
    const prompts = others.filter(({ isPrefill }) => isPrefill);
    const promptMs = prompts.reduce((sum, { ms }) => sum + ms, 0);
    const promptTokens = prompts.reduce((sum, { tokens }) => sum + tokens, 0);
    const maxMs = 2 * promptTokens * (this.#msPerPromptToken ?? Number.POSITIVE_INFINITY);
    const charged = promptMs > maxMs ? maxMs / promptMs : 1;
    builder.add("decode", promptMs * (1 - charged));
    for (const share of others) {
      const ms = share.isPrefill ? share.ms * charged : share.ms;
      if (!share.isPrefill) builder.add("decode", ms);
      else if (share.order === order) builder.add("prefill", ms, share.tokens);
      else {
        builder.add("prefill_burst", ms, share.tokens);
        builder.blame("prefill_burst", share.order, ms, share.tokens);
      }
    }
  }

  /** Adds a step in which the sequence did not run. */
  #addWait(builder: ExplanationBuilder, timeline: RequestTimeline, sequence: number, step: LoggedStep): void {
    const preemption = timeline.preemptions.findLast(
      (earlier) => earlier.sequence === sequence && earlier.step <= step.step,
    );
    const outputs = timeline.sequences[sequence]!.steps;
    if (preemption === undefined || !isBetweenOutputs(outputs, preemption.step, step.step)) {
      addAbsence(builder, step);
      return;
    }
    builder.add("preemption", step.durationMs);
    const { byOrder } = preemption;
    if (byOrder !== undefined && byOrder !== timeline.order)
      builder.blame("preemption", byOrder, step.computeMs, 0);
  }

  /** Median batch size of the steps that gave the sequence output. */
  #usualBatch(sequence: SequenceTimeline): number {
    const known = this.#usualBatches.get(sequence);
    if (known !== undefined) return known;
    const sizes: number[] = [];
    const { steps } = sequence;
    for (let output = 0; output < steps.length; output += 1) {
      const size = this.#log.numSharesOf(steps.at(output));
      if (size !== undefined) sizes.push(size);
    }
    sizes.sort((a, b) => a - b);
    const usual = sizes[Math.floor((sizes.length - 1) / 2)] ?? 1;
    this.#usualBatches.set(sequence, usual);
    return usual;
  }
}

function addAbsence(builder: ExplanationBuilder, step: LoggedStep): void {
  builder.add("not_scheduled", step.durationMs);
  for (const { order, ms, tokens } of step.shares) builder.blame("not_scheduled", order, ms, tokens);
}

/** Whether no output came in steps [from, to). */
function isBetweenOutputs(outputs: IntList, from: number, to: number): boolean {
  let low = 0;
  let high = outputs.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (outputs.at(middle) < from) low = middle + 1;
    else high = middle;
  }
  return low === outputs.length || outputs.at(low) >= to;
}
