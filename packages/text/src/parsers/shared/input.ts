/** What a machine gets while it waits for text: it yields, and is resumed when there is more. */
export type Waiting<Result = void> = Generator<void, Result, void>;

/**
 * Output text on its way into a machine, read one UTF-16 unit at a time. Nothing tells a machine where one piece ended and
 * the next began, so what it does cannot depend on how the text was cut.
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

  /** Units read so far, those handed back not counted. */
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

  /** What is there already, up to the first of `stops`; may be empty. */
  takeRun(stops: ReadonlySet<string>): string {
    const start = this.#at;
    let at = start;
    while (at < this.#text.length && !stops.has(this.#text.charAt(at))) at += 1;
    this.#at = at;
    return this.#text.slice(start, at);
  }

  /** Hands text back that was just read. */
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
