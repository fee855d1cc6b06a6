interface Waiting {
  readonly tenant: string;
  readonly begin: () => void;
}

/**
 * Lets so many pieces of work run at once; others wait in order. One place of several is kept for other tenants than the one
 * that has the rest.
 */
export class Turns {
  readonly #max: number;
  readonly #waiting: Waiting[] = [];
  readonly #running = new Map<string, number>();
  #numRunning = 0;

  constructor(max: number) {
    this.#max = max;
  }

  async take<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((begin) => {
      this.#waiting.push({ tenant, begin });
      this.#next();
    });
    try {
      return await work();
    } finally {
      this.#count(tenant, -1);
      this.#next();
    }
  }

  #next(): void {
    if (this.#numRunning === this.#max) return;
    const most = Math.max(1, this.#max - 1);
    const index = this.#waiting.findIndex(({ tenant }) => (this.#running.get(tenant) ?? 0) < most);
    if (index < 0) return;
    const [chosen] = this.#waiting.splice(index, 1);
    this.#count(chosen!.tenant, 1);
    chosen!.begin();
  }

  #count(tenant: string, change: 1 | -1): void {
    this.#numRunning += change;
    const running = (this.#running.get(tenant) ?? 0) + change;
    if (running === 0) this.#running.delete(tenant);
    else this.#running.set(tenant, running);
  }
}
