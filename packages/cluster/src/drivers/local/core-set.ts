import { availableParallelism } from "node:os";
import { readFileSync } from "node:fs";

/** Cores of a list such as `0-3,6`, in order. */
export function parseCores(text: string): readonly number[] {
  const cores = text.split(",").flatMap((part) => {
    const [first = 0, last = first] = part.split("-").map(Number);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at);
  });
  return [...new Set(cores)].toSorted((a, b) => a - b);
}

/** Those that the system lets this process run on. */
export function ownCores(): readonly number[] {
  try {
    const [, list] = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    if (list !== undefined) return parseCores(list);
  } catch {
    // not Linux: cores are counted, not named
  }
  return Array.from({ length: availableParallelism() }, (_, core) => core);
}

/** Which cores replicas run on. While a new version replaces an old one, the two share. */
export class CoreSet {
  readonly cores: readonly number[];
  readonly #users = new Map<string, readonly number[]>();

  constructor(cores: readonly number[]) {
    this.cores = cores;
  }

  /** The least used, lowest first, so that replicas lie side by side. */
  take(id: string, count: number): readonly number[] {
    const uses = new Map(this.cores.map((core) => [core, 0]));
    for (const taken of this.#users.values())
      for (const core of taken) uses.set(core, (uses.get(core) ?? 0) + 1);
    const chosen = this.cores
      .toSorted((a, b) => (uses.get(a) ?? 0) - (uses.get(b) ?? 0) || a - b)
      .slice(0, count);
    const taken = chosen.toSorted((a, b) => a - b);
    this.#users.set(id, taken);
    return taken;
  }

  release(id: string): void {
    this.#users.delete(id);
  }
}
