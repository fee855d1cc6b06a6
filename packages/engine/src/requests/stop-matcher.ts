/** A node of the trie. Nearly all have one child, which needs no map. */
class Node {
  /** UTF-16 units from the root: how much of a stop string has matched here. */
  readonly depth: number;
  /** Node of the longest proper suffix that is also in the trie. */
  fallback = 0;
  /** Index of the longest stop string that ends here. */
  stop: number | undefined;
  #unit: number | undefined;
  #child = 0;
  #others: Map<number, number> | undefined;

  constructor(depth: number) {
    this.depth = depth;
  }

  child(unit: number): number | undefined {
    return unit === this.#unit ? this.#child : this.#others?.get(unit);
  }

  addChild(unit: number, child: number): void {
    if (this.#unit === undefined) {
      this.#unit = unit;
      this.#child = child;
    } else (this.#others ??= new Map()).set(unit, child);
  }

  *children(): Iterable<[unit: number, child: number]> {
    if (this.#unit !== undefined) yield [this.#unit, this.#child];
    if (this.#others !== undefined) yield* this.#others;
  }
}

/** Stop strings of one request as an Aho-Corasick automaton over UTF-16 units; shared by its sequences. */
export class StopAutomaton {
  readonly stops: readonly string[];
  readonly nodes: readonly Node[];

  constructor(stops: readonly string[]) {
    this.stops = stops;
    const nodes = [new Node(0)];
    for (const [index, stop] of stops.entries()) {
      let at = 0;
      for (let unit = 0; unit < stop.length; unit += 1) {
        const node = nodes[at]!;
        let child = node.child(stop.charCodeAt(unit));
        if (child === undefined) {
          child = nodes.length;
          nodes.push(new Node(node.depth + 1));
          node.addChild(stop.charCodeAt(unit), child);
        }
        at = child;
      }
      nodes[at]!.stop ??= index;
    }
    this.nodes = nodes;
    const queue = [0];
    for (const index of queue) {
      const node = nodes[index]!;
      for (const [unit, childIndex] of node.children()) {
        const child = nodes[childIndex]!;
        child.fallback = index === 0 ? 0 : this.step(node.fallback, unit);
        child.stop ??= nodes[child.fallback]!.stop;
        queue.push(childIndex);
      }
    }
  }

  step(from: number, unit: number): number {
    let at = from;
    for (;;) {
      const node = this.nodes[at]!;
      const child = node.child(unit);
      if (child !== undefined) return child;
      if (at === 0) return 0;
      at = node.fallback;
    }
  }
}

/**
 * Watches one sequence's text for stop strings. Text that may begin one is held back until that is decided, so no part of
 * a stop string is ever delivered. The match that ends first counts, and the longest of those that end together, so
 * the result does not depend on how tokens split the text. Linear in the text.
 */
export class StopMatcher {
  readonly #automaton: StopAutomaton;
  readonly #includeStop: boolean;
  #state = 0;
  #held = "";
  #matched: string | undefined;

  /** With `includeStop` the stop string is part of the output, and nothing is held back. */
  constructor(automaton: StopAutomaton, includeStop: boolean) {
    this.#automaton = automaton;
    this.#includeStop = includeStop;
  }

  /** The stop string found; nothing may be pushed afterwards. */
  get matched(): string | undefined {
    return this.#matched;
  }

  /**
   * Appends text and returns what cannot belong to a stop string. With `mayStop` false, a stop string that ends in this text
   * passes as text; one that only begins in it counts.
   */
  push(text: string, mayStop = true): string {
    const { nodes, stops } = this.#automaton;
    for (let index = 0; index < text.length; index += 1) {
      this.#state = this.#automaton.step(this.#state, text.charCodeAt(index));
      const stop = nodes[this.#state]!.stop;
      if (stop === undefined || !mayStop) continue;
      const found = stops[stop]!;
      this.#matched = found;
      const seen = this.#held + text.slice(0, index + 1);
      this.#held = "";
      return this.#includeStop ? seen : seen.slice(0, seen.length - found.length);
    }
    if (this.#includeStop) return text;
    const seen = this.#held + text;
    const certain = seen.length - nodes[this.#state]!.depth;
    this.#held = seen.slice(certain);
    return seen.slice(0, certain);
  }

  /** The text held back, when the sequence ended for another reason. */
  flush(): string {
    const held = this.#held;
    this.#held = "";
    this.#state = 0;
    return held;
  }
}
