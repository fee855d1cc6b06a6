import { setMaxListeners } from "node:events";

/**
 * Ends a request when its caller gives up or its time is over. `AbortSignal.any` over a signal that lives as long as a run
 * keeps every request's signal alive with it, hence a listener that is taken off again.
 */
export class RequestClock implements Disposable {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #onAbort: () => void;
  #timer: NodeJS.Timeout;
  #isOver = false;

  constructor(parent: AbortSignal, timeoutMs: number) {
    this.#parent = parent;
    this.#onAbort = (): void => this.#controller.abort(parent.reason);
    this.#timer = setTimeout(this.#expire, timeoutMs);
    // a run has one signal for all its requests, of which hundreds may be under way
    setMaxListeners(0, parent);
    if (parent.aborted) this.#onAbort();
    else parent.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get hasTimedOut(): boolean {
    return this.#isOver;
  }

  /** From now on. */
  restart(timeoutMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#expire, timeoutMs);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#parent.removeEventListener("abort", this.#onAbort);
  }

  readonly #expire = (): void => {
    this.#isOver = true;
    this.#controller.abort(new DOMException("the request took too long", "TimeoutError"));
  };
}
