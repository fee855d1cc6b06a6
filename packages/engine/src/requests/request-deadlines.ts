import { OctavoError } from "@octavo/protocol/errors";
import type { ActiveRequest } from "./active-request.js";

/** The longest that Node's timers can wait. */
const longestTimerMs = 2 ** 31 - 1;

/** A bound that a request has not met yet. */
interface Bound {
  readonly reason: "queue_deadline" | "first_token_deadline" | "total_deadline";
  readonly ms: number;
  readonly what: string;
}

/** Ends requests that have not been admitted, begun to answer or ended when they should have. */
export class RequestDeadlines {
  readonly #timers = new Map<ActiveRequest, NodeJS.Timeout>();
  readonly #expire: (request: ActiveRequest, reason: Bound["reason"], error: OctavoError) => void;

  constructor(expire: (request: ActiveRequest, reason: Bound["reason"], error: OctavoError) => void) {
    this.#expire = expire;
  }

  watch(request: ActiveRequest): void {
    const bound = nextBound(request);
    if (bound === undefined) return;
    const dueMs = request.timeline.arrivalMs + bound.ms;
    const delayMs = Math.min(longestTimerMs, Math.max(0, dueMs - performance.now()));
    this.#timers.set(
      request,
      setTimeout(() => this.#check(request), delayMs),
    );
  }

  release(request: ActiveRequest): void {
    clearTimeout(this.#timers.get(request));
    this.#timers.delete(request);
  }

  #check(request: ActiveRequest): void {
    this.#timers.delete(request);
    if (request.isOver) return;
    const bound = nextBound(request);
    const waitedMs = performance.now() - request.timeline.arrivalMs;
    // A timer may fire a moment early.
    if (bound === undefined || waitedMs < bound.ms - 1) {
      this.watch(request);
      return;
    }
    const message = `The request ${bound.what} ${bound.ms} ms after it arrived, which is its deadline.`;
    this.#expire(request, bound.reason, new OctavoError("deadline_exceeded", message));
  }
}

/** The earliest bound that is still open. */
function nextBound({ deadlines, timeline }: ActiveRequest): Bound | undefined {
  const { queueMs, firstTokenMs, totalMs } = deadlines;
  const open: Bound[] = [];
  if (queueMs !== undefined && timeline.admittedMs === undefined)
    open.push({ reason: "queue_deadline", ms: queueMs, what: "was still in the queue" });
  if (firstTokenMs !== undefined && timeline.firstTokenMs === undefined)
    open.push({ reason: "first_token_deadline", ms: firstTokenMs, what: "had no first token" });
  if (totalMs !== undefined) open.push({ reason: "total_deadline", ms: totalMs, what: "was not complete" });
  return open.sort((a, b) => a.ms - b.ms)[0];
}
