import { whenAborted } from "@octavo/protocol/abort";

/**
 * Ends a request when its caller gives up or its time is over. `AbortSignal.any` over a signal that lives as long as a run
 * keeps every request's signal alive with it, hence a listener that is taken off again.
 */
export class RequestClock implements Disposable {
  readonly #controller = new AbortController();
  readonly #forgetParent: () => void;
  #timer: NodeJS.Timeout;
  #isOver = false;

  constructor(parent: AbortSignal, timeoutMs: number) {
    this.#timer = setTimeout(this.#expire, timeoutMs);
    this.#forgetParent = whenAborted(parent, () => this.#controller.abort(parent.reason));
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
    this.#forgetParent();
  }

  readonly #expire = (): void => {
    this.#isOver = true;
    this.#controller.abort(new DOMException("the request took too long", "TimeoutError"));
  };
}
