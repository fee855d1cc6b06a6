/** A parsing generator: it yields where it needs more text and is resumed when there is some. */
export type Waiting<Result = void> = Generator<void, Result, void>;

/**
 * Output text as a machine reads it, one UTF-16 unit at a time. Chunk borders are invisible to the machine, so its result
 * cannot depend on them.
 */
export class Input {
  #text = "";
  #at = 0;
  #isEnded = false;
  #dropped = 0;

  push(text: string): void {
    this.#dropped += this.#at;
    this.#text = this.#at >= this.#text.length ? text : this.#text.slice(this.#at) + text;
    this.#at = 0;
  }

  end(): void {
    this.#isEnded = true;
  }

  /** Units read so far, without unread ones. */
  get offset(): number {
    return this.#dropped + this.#at;
  }

  /** The next unit; "" at the end of the output. */
  *next(): Waiting<string> {
    while (this.#at >= this.#text.length) {
      if (this.#isEnded) return "";
      yield;
    }
    return this.#text.charAt(this.#at++);
  }

  /** As `next`, without taking it. */
  *peek(): Waiting<string> {
    const unit = yield* this.next();
    if (unit !== "") this.#at -= 1;
    return unit;
  }

  /** Buffered text up to the first of `stops`; may be empty. */
  takeRun(stops: ReadonlySet<string>): string {
    const start = this.#at;
    let at = start;
    while (at < this.#text.length && !stops.has(this.#text.charAt(at))) at += 1;
    this.#at = at;
    return this.#text.slice(start, at);
  }

  /** Puts text back that was just read. */
  unread(text: string): void {
    if (text === "") return;
    if (this.#at >= text.length) {
      this.#at -= text.length;
      return;
    }
    this.#dropped += this.#at - text.length;
    this.#text = text + this.#text.slice(this.#at);
    this.#at = 0;
  }
}

export function isSpace(unit: string): boolean {
  return unit === " " || unit === "\n" || unit === "\t" || unit === "\r";
}

/** Takes white space and returns it. */
export function* takeSpace(input: Input): Waiting<string> {
  let space = "";
  for (;;) {
    const unit = yield* input.next();
    if (unit === "") return space;
    if (!isSpace(unit)) {
      input.unread(unit);
      return space;
    }
    space += unit;
  }
}
