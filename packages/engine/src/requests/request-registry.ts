import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol/errors";
import type { RefusedRequest } from "../api.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { Sequence, SequenceGroup } from "../scheduler/sequence.js";
import type { ActiveRequest } from "./active-request.js";
import type { AdmissionQueue } from "../admission/admission-queue.js";
import type { ObserverList } from "../evidence/observer-list.js";
import { RequestDeadlines } from "./request-deadlines.js";

/**
 * The requests inside the engine and how they leave it. A request is over as soon as its reader has the last event; its
 * sequences leave the scheduler at once or, if a step in flight computes them, after that step's results.
 */
export class RequestRegistry {
  readonly #scheduler: Scheduler;
  readonly #queue: AdmissionQueue<ActiveRequest>;
  readonly #observers: ObserverList;
  readonly #onLeft: (sequence: Sequence) => void;
  readonly #onGone: (request: ActiveRequest, isComplete: boolean) => void;
  readonly #deadlines = new RequestDeadlines((request, reason, error) => this.refuse(request, reason, error));
  readonly #requests = new Map<SequenceGroup, ActiveRequest>();
  /** Requests with events to deliver. */
  readonly #undelivered = new Set<ActiveRequest>();
  readonly #idleWaiters: (() => void)[] = [];

  /**
   * `onLeft` is called for each sequence that has left the scheduler; `onGone` for each request whose last sequence has, with
   * whether it completed rather than being aborted or failed.
   */
  constructor(
    scheduler: Scheduler,
    queue: AdmissionQueue<ActiveRequest>,
    observers: ObserverList,
    onLeft: (sequence: Sequence) => void,
    onGone: (request: ActiveRequest, isComplete: boolean) => void,
  ) {
    this.#scheduler = scheduler;
    this.#queue = queue;
    this.#observers = observers;
    this.#onLeft = onLeft;
    this.#onGone = onGone;
  }

  /** Requests with a sequence in the scheduler. */
  get size(): number {
    return this.#requests.size;
  }

  of(sequence: Sequence): ActiveRequest {
    const request = this.#requests.get(sequence.group);
    if (request === undefined) {
      throw new OctavoError(
        "internal_error",
        `request ${sequence.group.requestId} has left but its sequence has not`,
      );
    }
    return request;
  }

  add(request: ActiveRequest, signal: AbortSignal | undefined): void {
    if (this.#requests.size === 0) this.#queue.noteWork();
    this.#requests.set(request, request);
    request.adapter?.retain();
    this.#queue.enter(request);
    for (const sequence of request.sequences) this.#scheduler.add(sequence);
    this.#deadlines.watch(request);
    request.onOver = whenAborted(signal, () => this.abort(request));
  }

  /** Takes a sequence out of the scheduler and, with the last one, its request out of the engine. */
  remove(request: ActiveRequest, sequence: Sequence): void {
    if (sequence.status !== "finished") {
      this.#scheduler.remove(sequence);
      request.release(sequence);
      this.#onLeft(sequence);
    }
    if (!this.#requests.has(request) || request.sequences.some((other) => other.status !== "finished"))
      return;
    const isComplete = !request.isOver;
    if (isComplete) {
      this.#queue.noteFinished(request, performance.now());
      this.#end(request, false);
    }
    this.#requests.delete(request);
    request.adapter?.release();
    this.#onGone(request, isComplete);
    if (this.#requests.size === 0) for (const resolve of this.#idleWaiters.splice(0)) resolve();
  }

  abort(request: ActiveRequest): void {
    if (request.isOver || !this.#requests.has(request)) return;
    this.#end(request, true);
    this.#removeIdleSequences(request);
    this.#deliverTo(request);
  }

  abortAll(): void {
    for (const request of this.#requests.values()) this.abort(request);
  }

  fail(request: ActiveRequest, error: OctavoError): void {
    this.#queue.leave(request);
    this.#deadlines.release(request);
    request.fail(error);
    this.#removeIdleSequences(request);
  }

  /** Fails a request for lack of room or time. */
  refuse(request: ActiveRequest, reason: RefusedRequest["reason"], error: OctavoError): void {
    const { requestId, account } = request;
    this.#observers.notify("onRefused", {
      requestId,
      tenant: account.tenant,
      lane: account.lane ?? 0,
      reason,
    });
    this.fail(request, error);
  }

  /** Fails every request; only when no step is or will be in flight. */
  failAll(error: OctavoError): void {
    for (const request of this.#requests.values()) {
      for (const sequence of request.sequences) sequence.numScheduled = 0;
      this.fail(request, error);
    }
  }

  /** Marks the request's new events for the next `deliver`. */
  noteEvents(request: ActiveRequest): void {
    this.#undelivered.add(request);
  }

  deliver(): void {
    for (const request of this.#undelivered) this.#deliverTo(request);
    this.#undelivered.clear();
  }

  whenIdle(): Promise<void> {
    if (this.#requests.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  #end(request: ActiveRequest, isAborted: boolean): void {
    this.#queue.leave(request);
    this.#deadlines.release(request);
    request.finish(isAborted, this.#observers);
    this.#undelivered.add(request);
  }

  #removeIdleSequences(request: ActiveRequest): void {
    for (const sequence of request.sequences) if (sequence.numScheduled === 0) this.remove(request, sequence);
  }

  /** Detokenizes here, so that a tokenizer that throws fails its own request only. */
  #deliverTo(request: ActiveRequest): void {
    try {
      request.deliver();
    } catch (thrown) {
      this.fail(request, OctavoError.from(thrown));
    }
  }
}
