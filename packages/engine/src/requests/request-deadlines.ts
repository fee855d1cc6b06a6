import { OctavoError } from "@octavo/protocol/errors";
import type { ActiveRequest } from "./active-request.js";

/** Node's longest timer. */
const maxTimerMs = 2 ** 31 - 1;

/** A deadline that a request has not met yet. */
interface Deadline {
  readonly reason: "queue_deadline" | "first_token_deadline" | "total_deadline";
  readonly ms: number;
  readonly what: string;
}

/** Ends requests that miss a deadline: to be admitted, to give a first token, or to complete. */
export class RequestDeadlines {
  readonly #timers = new Map<ActiveRequest, NodeJS.Timeout>();
  readonly #expire: (request: ActiveRequest, reason: Deadline["reason"], error: OctavoError) => void;

  constructor(expire: (request: ActiveRequest, reason: Deadline["reason"], error: OctavoError) => void) {
    this.#expire = expire;
  }

  watch(request: ActiveRequest): void {
    const deadline = nextDeadline(request);
    if (deadline === undefined) return;
    const dueMs = request.timeline.arrivalMs + deadline.ms;
    const delayMs = Math.min(maxTimerMs, Math.max(0, dueMs - performance.now()));
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
    const deadline = nextDeadline(request);
    const waitedMs = performance.now() - request.timeline.arrivalMs;
    // A timer may fire a moment early.
    if (deadline === undefined || waitedMs < deadline.ms - 1) {
      this.watch(request);
      return;
    }
    const message = `The request ${deadline.what} ${deadline.ms} ms after it arrived, which is its deadline.`;
    this.#expire(request, deadline.reason, new OctavoError("deadline_exceeded", message));
  }
}

/** The earliest open deadline. */
function nextDeadline({ deadlines, timeline }: ActiveRequest): Deadline | undefined {
  const { queueMs, firstTokenMs, totalMs } = deadlines;
  const open: Deadline[] = [];
  if (queueMs !== undefined && timeline.admittedMs === undefined)
    open.push({ reason: "queue_deadline", ms: queueMs, what: "was still in the queue" });
  if (firstTokenMs !== undefined && timeline.firstTokenMs === undefined)
    open.push({ reason: "first_token_deadline", ms: firstTokenMs, what: "had no first token" });
  if (totalMs !== undefined) open.push({ reason: "total_deadline", ms: totalMs, what: "was not complete" });
  return open.sort((a, b) => a.ms - b.ms)[0];
}
