interface Held {
  readonly tenant: string;
}

interface Amounts {
  /** Entries of one tenant. */
  readonly maxEach: number;
  /** Limit over all tenants. */
  readonly maxBytes: number;
}

/**
 * Which of `entries`, least recently used first, have to go: a tenant's own beyond their number; and beyond the memory for all
 * those of the tenant that takes the most, so that a tenant with no more than an equal share loses none to others. `current` stays.
 */
export function entriesToDrop<Entry extends Held>(
  entries: Iterable<Entry>,
  current: Entry,
  { maxEach, maxBytes }: Amounts,
  bytesOf: (entry: Entry) => number,
): Entry[] {
  const shelves = new Map<string, Shelf<Entry>>();
  for (const entry of entries) {
    let shelf = shelves.get(entry.tenant);
    if (shelf === undefined) shelves.set(entry.tenant, (shelf = new Shelf()));
    shelf.add(entry, bytesOf(entry), entry !== current);
  }
  const dropped: Entry[] = [];
  const own = shelves.get(current.tenant);
  const tooMany = Math.max(0, (own?.count ?? 0) - maxEach);
  for (let count = 0; count < tooMany; count += 1) dropped.push(own!.drop());
  const all = [...shelves.values()];
  for (;;) {
    let total = 0;
    let largest: Shelf<Entry> | undefined;
    for (const shelf of all) {
      total += shelf.bytes;
      if (shelf.canDrop && (largest === undefined || shelf.bytes > largest.bytes)) largest = shelf;
    }
    if (total <= maxBytes || largest === undefined) return dropped;
    dropped.push(largest.drop());
  }
}

/** One tenant's entries, oldest first. */
class Shelf<Entry> {
  readonly #droppable: { readonly entry: Entry; readonly bytes: number }[] = [];
  #next = 0;
  count = 0;
  bytes = 0;

  get canDrop(): boolean {
    return this.#next < this.#droppable.length;
  }

  add(entry: Entry, bytes: number, isDroppable: boolean): void {
    this.count += 1;
    this.bytes += bytes;
    if (isDroppable) this.#droppable.push({ entry, bytes });
  }

  drop(): Entry {
    const { entry, bytes } = this.#droppable[this.#next++]!;
    this.count -= 1;
    this.bytes -= bytes;
    return entry;
  }
}
