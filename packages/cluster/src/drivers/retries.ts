const firstWaitMs = 5000;
const longestWaitMs = 120_000;

/** When to start over what gave up by itself: after ever longer times, saying why once each. */
export class Retries {
  readonly #tell: (message: string) => void;
  readonly #entries = new Map<string, { count: number; atMs: number | undefined }>();

  constructor(tell: (message: string) => void) {
    this.#tell = tell;
  }

  /** How often it was started over. */
  count(name: string | undefined): number {
    return (name === undefined ? undefined : this.#entries.get(name))?.count ?? 0;
  }

  /** Whether it is to be started over now; called again and again while it is given up. */
  isDue(name: string, reason: string): boolean {
    const entry = this.#entries.get(name) ?? { count: 0, atMs: undefined };
    this.#entries.set(name, entry);
    const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** entry.count);
    if (entry.atMs === undefined) {
      entry.atMs = performance.now() + waitMs;
      this.#tell(`${name}: ${reason}; it is started over in ${waitMs / 1000} s`);
    }
    if (performance.now() < entry.atMs) return false;
    entry.count += 1;
    entry.atMs = undefined;
    return true;
  }
}
