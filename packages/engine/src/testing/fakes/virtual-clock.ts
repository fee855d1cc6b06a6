/**
 * Replaces `performance.now()` until it is disposed: time passes only by `advance`, so that durations in tests are exact on the
 * busiest machine. Timers keep to the machine's clock.
 */
export class VirtualClock {
  #nowMs = performance.now();

  constructor() {
    performance.now = () => this.#nowMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }

  [Symbol.dispose](): void {
    // The prototype's method becomes visible again.
    Reflect.deleteProperty(performance, "now");
  }
}
