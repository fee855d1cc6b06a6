/** A binary heap of values by time; equal times come in any order. */
export class EventHeap<Value> {
  readonly #times: number[] = [];
  readonly #values: Value[] = [];

  get nextS(): number {
    return this.#times[0] ?? Number.POSITIVE_INFINITY;
  }

  push(timeS: number, value: Value): void {
    let at = this.#times.length;
    this.#times.push(timeS);
    this.#values.push(value);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((this.#times[parent] ?? 0) <= timeS) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  pop(): Value | undefined {
    const first = this.#values[0];
    const time = this.#times.pop();
    const value = this.#values.pop();
    if (this.#times.length === 0 || time === undefined || value === undefined) return first;
    this.#times[0] = time;
    this.#values[0] = value;
    for (let at = 0; ;) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = at;
      if ((this.#times[left] ?? Infinity) < (this.#times[least] ?? Infinity)) least = left;
      if ((this.#times[right] ?? Infinity) < (this.#times[least] ?? Infinity)) least = right;
      if (least === at) return first;
      this.#swap(at, least);
      at = least;
    }
  }

  #swap(one: number, other: number): void {
    const [time, value] = [this.#times[one], this.#values[one]];
    this.#times[one] = this.#times[other] as number;
    this.#values[one] = this.#values[other] as Value;
    this.#times[other] = time as number;
    this.#values[other] = value as Value;
  }
}
