/**
 * Takes `performance.now()` over until it is disposed of: time passes only when it is told to, so that what a test says of
 * durations holds on the busiest machine. Timers keep to the machine's clock.
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
    // What is left is the prototype's.
    Reflect.deleteProperty(performance, "now");
  }
}
