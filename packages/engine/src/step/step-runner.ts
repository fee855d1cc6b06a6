import type { StepResult } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { alone } from "../scheduler/policies/alone.js";
import { noAdmission } from "../scheduler/policies/no-admission.js";
import { PrefillPacer } from "../scheduler/prefill-pacer.js";
import type { PlannedStep } from "../scheduler/step-budget.js";
import type { Sequence } from "../scheduler/sequence.js";
import type { ActiveRequest } from "../requests/active-request.js";
import type { EngineParts } from "../engine-parts.js";
import { quarantined } from "../admission/quarantine.js";
import { StepFailures } from "./step-failures.js";
import { StepPlanBuilder } from "./step-plan-builder.js";
import { StepResults } from "./step-results.js";

/**
 * Runs steps: plans one, passes it to the backend, delivers the output of the previous step while it computes, then applies
 * its results. Only applying results separates two steps, since it decides which sequences go on.
 */
export class StepRunner {
  readonly #parts: EngineParts;
  readonly #pacer: PrefillPacer;
  readonly #plans: StepPlanBuilder;
  readonly #results: StepResults;
  readonly #failures = new StepFailures();

  constructor(parts: EngineParts) {
    this.#parts = parts;
    const { maxNumSeqs, maxNumBatchedTokens, blockSize, maxPrefillStepMs, hooks, opTimes } = parts.options;
    this.#pacer = new PrefillPacer(maxPrefillStepMs);
    this.#plans = new StepPlanBuilder(maxNumSeqs, maxNumBatchedTokens, blockSize, {
      wantLogits: hooks.onLogits !== undefined,
      wantOpTimes: opTimes,
    });
    this.#results = new StepResults(parts, this.#plans);
  }

  /**
   * Returns whether a step was computed and applied; false if nothing was left to compute, or if the step failed and its
   * requests are retried. Rejects if the backend fails for good. Without `admits`, waiting sequences go on waiting.
   */
  async run(admits = true): Promise<boolean> {
    const { options, pool, cache, scheduler, speculation, requests, journal, observers, evidence, faults } =
      this.#parts;
    await this.#prepareMasks();
    if (this.#parts.requests.size === 0) return false;
    const startMs = performance.now();
    const evictionsBefore = pool.numEvictions;
    const step = this.#plan(admits);
    if (step.sequences.length === 0) return false;
    // Only a draft model takes time; otherwise the step must not wait for a turn of the event loop.
    const drafting = speculation?.draft(step, this.#requestOf);
    const draftMs = drafting === undefined ? 0 : await timed(drafting.catch(unlessLost));
    scheduler.reserveSnapshots(step.sequences);
    const built = this.#plans.build(step.sequences, this.#requestOf);
    const plan = speculation?.isResting === true ? { ...built, withoutSent: true } : built;
    const draftTokens = plan.numTokens - step.prefillTokens - step.decodeTokens;
    const blocksUsed = pool.numUsed;
    evidence.beginStep(step.sequences, step.prefillTokens, (sequence) => requests.of(sequence).timeline);
    journal?.write();
    const turn = eventLoopTurn();
    let result: StepResult;
    try {
      const pending = options.backend.execute(options.program, cache, plan);
      requests.deliver();
      result = await pending;
    } catch (thrown) {
      await turn;
      await this.#recover(step, startMs, thrown);
      return false;
    }
    // Timers and sockets get a turn even if the backend answers at once.
    await turn;
    this.#failures.noteSuccess();
    const held = faults?.hold(result.computeMs);
    const computeMs = held === undefined ? result.computeMs : await held;
    evidence.measureStep(computeMs);
    const generatedTokens = this.#results.apply(step, result);
    const following = speculation?.follow(step, plan, result);
    const followMs = following === undefined ? 0 : await timed(following);
    this.#pacer.observe(step, computeMs + draftMs + followMs);
    const end = {
      startMs,
      durationMs: performance.now() - startMs,
      blocksUsed,
      blocksEvicted: pool.numEvictions - evictionsBefore,
      preemptions: step.preempted.length,
    };
    const { prefillTokens, decodeTokens } = step;
    // What readers wait for: computing and the work around it, a large part of a small model's step.
    const wallMs = Math.max(computeMs, end.durationMs);
    scheduler.observe({ prefillTokens, decodeTokens: decodeTokens + draftTokens }, wallMs);
    speculation?.observe(step, draftTokens, wallMs);
    observers.notify("onStep", {
      step: evidence.currentStep,
      computeMs,
      exchanges: result.exchanges,
      opTimes: result.opTimes,
      prefillMs: evidence.prefillMs,
      numSequences: step.sequences.length,
      prefillTokens,
      decodeTokens,
      draftTokens,
      generatedTokens,
      ...end,
    });
    evidence.endStep(end);
    return true;
  }

  /** Finishes the masks that the last step's turn had no budget for, while the event loop turns. */
  async #prepareMasks(): Promise<void> {
    const { scheduler, requests } = this.#parts;
    const isWaiting = (sequence: Sequence): boolean => {
      if (sequence.status !== "running") return false;
      const request = requests.of(sequence);
      try {
        return !request.prepareMask(sequence);
      } catch (thrown) {
        requests.fail(request, OctavoError.from(thrown));
        return false;
      }
    };
    let waiting = scheduler.running.filter(isWaiting);
    while (waiting.length > 0) {
      await eventLoopTurn();
      waiting = waiting.filter(isWaiting);
    }
  }

  readonly #requestOf = (sequence: Sequence): ActiveRequest => this.#parts.requests.of(sequence);

  #plan(admits: boolean): PlannedStep {
    const { scheduler, requests, faults } = this.#parts;
    this.#preemptChosen();
    faults?.beforePlan();
    const suspect = this.#failures.nextSuspect;
    const step =
      suspect === undefined
        ? scheduler.schedule(this.#pacer.maxTokens(scheduler.numGenerating), admits ? undefined : noAdmission)
        : scheduler.schedule(Number.POSITIVE_INFINITY, alone(suspect.sequences));
    if (step.sequences.length === 0)
      throw new OctavoError("internal_error", "requests are waiting, but none can run");
    this.#notePreemptions(step.preempted);
    const nowMs = performance.now();
    for (const sequence of step.admitted) {
      const request = requests.of(sequence);
      try {
        this.#admit(request, sequence, nowMs);
      } catch (thrown) {
        for (const other of request.sequences) other.numScheduled = 0;
        requests.fail(request, OctavoError.from(thrown));
      }
    }
    return step.admitted.some((sequence) => sequence.status === "finished")
      ? { ...step, sequences: step.sequences.filter((sequence) => sequence.status === "running") }
      : step;
  }

  /** Preempts the sequences that the hook chooses. */
  #preemptChosen(): void {
    const { options, scheduler } = this.#parts;
    const { hooks } = options;
    if (hooks.choosePreemptions === undefined) return;
    const running = [...scheduler.running];
    const views = running.map(({ group, index, numTokens, numComputed }) => ({
      requestId: group.requestId,
      index,
      numTokens,
      numComputed,
    }));
    for (const chosen of new Set(hooks.choosePreemptions(views))) {
      const sequence = running[chosen];
      if (sequence !== undefined) scheduler.preempt(sequence);
    }
  }

  #notePreemptions(preempted: readonly Sequence[]): void {
    const { requests, observers, evidence } = this.#parts;
    for (const sequence of preempted) {
      observers.notify("onPreemption", sequence.group.requestId);
      requests.of(sequence).timeline.notePreemption({
        sequence: sequence.index,
        step: evidence.currentStep,
        byOrder: sequence.preemptedBy,
      });
    }
  }

  #admit(request: ActiveRequest, sequence: Sequence, nowMs: number): void {
    const { options, queue, journal, observers } = this.#parts;
    queue.leave(request);
    journal?.began(request);
    if (request.timeline.admittedMs === undefined) {
      request.timeline.admittedMs = nowMs;
      request.timeline.evictedPrefixTokens = sequence.evictedPrefixTokens;
      if (options.enablePrefixCaching && sequence.firstWantedRow > 0) {
        observers.notify("onPrefixLookup", sequence.numPromptTokens, sequence.numComputed);
      }
    }
    request.prepare(sequence);
  }

  /** Discards a failed step and retries its requests one by one; throws if the backend fails for good. */
  async #recover({ sequences, preempted }: PlannedStep, startMs: number, thrown: unknown): Promise<void> {
    const { options, pool, scheduler, requests, quarantine, observers, evidence } = this.#parts;
    const error = OctavoError.from(thrown);
    evidence.measureStep(0);
    evidence.endStep({
      startMs,
      durationMs: performance.now() - startMs,
      blocksUsed: pool.numUsed,
      blocksEvicted: 0,
      preemptions: preempted.length,
    });
    observers.notify("onStepFailed", error);
    const culprit = this.#failures.noteFailure(sequences, this.#requestOf);
    const isLost = error.code === "device_lost";
    // A device that is gone for good is no request's fault.
    if (this.#failures.isHopeless || error.code === "engine_failed" || (isLost && !options.renewal))
      throw thrown;
    for (const sequence of sequences) {
      scheduler.forget(sequence);
      sequence.numScheduled = 0;
    }
    for (const sequence of scheduler.running.slice()) scheduler.preempt(sequence);
    for (const sequence of sequences) {
      const request = requests.of(sequence);
      if (request.isOver) requests.remove(request, sequence);
    }
    if (culprit !== undefined && !culprit.isOver) {
      quarantine.add({ promptTokens: culprit.promptTokens, adapter: culprit.adapter });
      requests.refuse(culprit, "quarantined", quarantined(thrown));
    }
    if (isLost) await this.#renewDevice(error);
  }

  /** Brings back what a lost device held, but for the KV cache's content, which nothing uses any more. */
  async #renewDevice({ message }: OctavoError): Promise<void> {
    const { options, pool, statePool, cache, speculation, requests, observers } = this.#parts;
    const { renewal, onWarning } = options;
    if (renewal === undefined) return;
    const startMs = performance.now();
    requests.deliver();
    pool.reset();
    statePool?.reset();
    speculation?.vacate(renewal.vacating);
    renewal.vacating.vacate(cache);
    const name = await renewal.renew();
    renewal.vacating.refillCache(cache);
    speculation?.refill(renewal.vacating);
    await options.backend.settled?.();
    const seconds = (performance.now() - startMs) / 1000;
    observers.notify("onDeviceRenewed", seconds);
    onWarning?.(
      `${message} ${name} is back with the weights after ${seconds.toFixed(1)} s; ${requests.size} requests in flight are computed again.`,
    );
  }
}

/** A device that is lost while drafts are made is met again by the step itself. */
function unlessLost(thrown: unknown): void {
  if (OctavoError.from(thrown).code !== "device_lost") throw thrown;
}

async function timed(work: Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work;
  return performance.now() - startMs;
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
