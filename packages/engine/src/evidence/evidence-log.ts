import type { Evidence, RequestEvidence, ServingRecord, SettledRequest } from "../api.js";
import type { Sequence } from "../scheduler/sequence.js";
import { Explainer } from "./explain.js";
import type { RequestName } from "./explanation.js";
import { type KnownRequest, type Neighbours, neighboursOf } from "./neighbours.js";
import type { RequestTimeline } from "./request-timeline.js";
import { type LoggedStep, type StepEnd, StepLog } from "./step-log.js";

/** A request as the evidence log sees it. */
export interface ObservedRequest {
  readonly requestId: string;
  readonly owner: object | undefined;
  readonly tenant: string;
  readonly timeline: RequestTimeline;
  readonly sequences: readonly Sequence[];
  readonly record: ServingRecord;
}

/** Ended requests that are kept... */
const maxEnded = 2048;
/** ...while their outputs are no more than this, at 8 bytes each. */
const maxOutputs = 1_000_000;

/** Stands for a request that is no longer kept. */
const unknown: RequestName = { requestId: "unknown", tenant: "unknown" };

/** What is kept of an ended request. */
interface Ended {
  readonly tenant: string;
  readonly timeline: RequestTimeline;
  readonly record: ServingRecord;
  readonly numUncachedTokens: number;
  readonly outputTokens: readonly number[];
}

/**
 * The engine's evidence: the latest steps and requests, and why their tokens were slow. A step's compute time is divided among
 * its sequences by their arithmetic: for every token twice the weights (12 h² a layer) plus attention over its context
 * (2 h a layer and position for scores, as much for values), Kaplan et al. 2020, §2.1.
 */
export class EvidenceLog implements Evidence {
  readonly blockSize: number;
  readonly #steps = new StepLog();
  readonly #hiddenSize: number;
  readonly #active = new Map<string, ObservedRequest>();
  readonly #ended = new Map<string, Ended>();
  #numEndedOutputs = 0;
  readonly #namesByOrder = new Map<number, RequestName>();
  /** Timelines of the sequences in the step. */
  readonly #running: RequestTimeline[] = [];
  #isComputing = false;
  /** Requests that ended while a step computes them. */
  readonly #unsettled = new Set<ObservedRequest>();
  readonly #onSettled: (request: SettledRequest) => void;

  /** `onSettled` is called once for each request, when nothing more will be computed for it. */
  constructor(hiddenSize: number, blockSize: number, onSettled: (request: SettledRequest) => void) {
    this.#hiddenSize = hiddenSize;
    this.blockSize = blockSize;
    this.#onSettled = onSettled;
  }

  /** Compute time of the prompt tokens of the step measured last. */
  get prefillMs(): number {
    return this.#steps.prefillMs;
  }

  /** Number of the step that runs, or runs next. */
  get currentStep(): number {
    return this.#steps.current;
  }

  get steps(): readonly LoggedStep[] {
    const steps: LoggedStep[] = [];
    for (let step = this.#steps.oldest; step < this.#steps.current; step += 1) {
      const logged = this.#steps.at(step);
      if (logged !== undefined) steps.push(logged);
    }
    return steps;
  }

  step(number: number): LoggedStep | undefined {
    return this.#steps.at(number);
  }

  request(requestId: string): RequestEvidence | undefined {
    const active = this.#active.get(requestId);
    const known =
      active === undefined
        ? this.#ended.get(requestId)
        : {
            tenant: active.tenant,
            timeline: active.timeline,
            record: active.record,
            numUncachedTokens: uncachedTokens(active),
          };
    if (known === undefined) return undefined;
    const explainer = new Explainer(this.#steps, (order) => this.#namesByOrder.get(order) ?? unknown);
    const { kernelMs, readerLagMs } = known.timeline;
    return {
      requestId,
      tenant: known.tenant,
      isOver: active === undefined,
      // Its reader may have lagged after it ended, and an aborted request may have been in a step.
      record: { ...known.record, kernelMs, readerLagMs },
      firstToken: explainer.firstToken(known.timeline, known.numUncachedTokens),
      slowGaps: explainer.slowGaps(known.timeline),
    };
  }

  neighbours(requestId: string): Neighbours | undefined {
    const known = [...this.#known()];
    const own = known.find((request) => request.requestId === requestId);
    if (own === undefined) return undefined;
    const { arrivalMs, endMs = performance.now() } = own.timeline;
    return neighboursOf(own, known, this.#steps.between(arrivalMs, endMs));
  }

  add(request: ObservedRequest): void {
    this.#active.set(request.requestId, request);
    const { requestId, tenant } = request;
    this.#namesByOrder.set(request.timeline.order, { requestId, tenant });
  }

  /** Keeps the evidence of an ended request, and drops the oldest. */
  end(request: ObservedRequest): void {
    const { requestId, tenant, timeline, record } = request;
    if (this.#active.get(requestId) === request) this.#active.delete(requestId);
    this.#forget(requestId);
    this.#ended.set(requestId, {
      tenant,
      timeline,
      record,
      numUncachedTokens: uncachedTokens(request),
      outputTokens: outputTokens(request),
    });
    this.#numEndedOutputs += timeline.numOutputs;
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= maxEnded && this.#numEndedOutputs <= maxOutputs) break;
      this.#forget(oldest);
    }
  }

  /** Reports the kernel time of an ended request, once no step computes it. */
  settle(request: ObservedRequest): void {
    const { requestId, owner, timeline } = request;
    if (this.#isComputing && this.#running.includes(timeline)) this.#unsettled.add(request);
    else this.#onSettled({ requestId, owner, kernelMs: timeline.kernelMs });
  }

  /** Records the sequences of the planned step. */
  beginStep(
    sequences: readonly Sequence[],
    prefillTokens: number,
    timelineOf: (sequence: Sequence) => RequestTimeline,
  ): void {
    this.#running.length = 0;
    this.#isComputing = true;
    for (const sequence of sequences) {
      const { numScheduled, numComputed, isDecoding } = sequence;
      const timeline = timelineOf(sequence);
      const draftTokens = sequence.draft.length;
      const tokens = numScheduled + draftTokens;
      const meanContext = numComputed + tokens / 2;
      const work = tokens * (1 + meanContext / (6 * this.#hiddenSize));
      this.#steps.add(timeline.order, sequence.index, tokens, !isDecoding, work, draftTokens);
      this.#running.push(timeline);
      timeline.noteStep(sequences.length, prefillTokens - (isDecoding ? 0 : numScheduled));
    }
  }

  /** Divides the compute time of the step, before its results are applied, since a request may end with them. */
  measureStep(computeMs: number): void {
    this.#steps.measure(computeMs);
    for (let index = 0; index < this.#running.length; index += 1) {
      this.#running[index]!.kernelMs += this.#steps.shareMs(index);
    }
    this.#settleAll();
  }

  /** Discards a step that failed. */
  abandonStep(): void {
    this.#settleAll();
  }

  endStep(step: StepEnd): void {
    this.#steps.end(step);
  }

  /** Running requests first, so that the latest of two with the same id is found. */
  *#known(): Generator<KnownRequest> {
    for (const request of this.#active.values()) {
      const { requestId, tenant, timeline, sequences } = request;
      const cachedTokens = sequences[0]?.cachedTokens ?? 0;
      const promptTokens = uncachedTokens(request) + cachedTokens;
      yield {
        requestId,
        tenant,
        isOver: false,
        timeline,
        promptTokens,
        cachedTokens,
        outputTokens: outputTokens(request),
      };
    }
    for (const [requestId, ended] of this.#ended) {
      const { tenant, timeline, record, numUncachedTokens, outputTokens: output } = ended;
      const { cachedTokens } = record;
      const promptTokens = numUncachedTokens + cachedTokens;
      yield { requestId, tenant, isOver: true, timeline, promptTokens, cachedTokens, outputTokens: output };
    }
  }

  #settleAll(): void {
    this.#isComputing = false;
    for (const request of this.#unsettled) this.settle(request);
    this.#unsettled.clear();
  }

  #forget(requestId: string): void {
    const ended = this.#ended.get(requestId);
    if (ended === undefined) return;
    this.#ended.delete(requestId);
    this.#numEndedOutputs -= ended.timeline.numOutputs;
    this.#namesByOrder.delete(ended.timeline.order);
  }
}

function uncachedTokens({ sequences }: ObservedRequest): number {
  const first = sequences[0];
  return first === undefined ? 0 : first.numPromptTokens - (first.cachedTokens ?? 0);
}

function outputTokens({ sequences }: ObservedRequest): readonly number[] {
  return sequences.map(({ numOutputTokens }) => numOutputTokens);
}
