/** The parts of a model's output, in order. Adjacent texts of one kind may be joined or split. */
export type OutputEvent =
  | { readonly kind: "content"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  /** Calls are numbered from 0; `id` only where the format writes one. */
  | { readonly kind: "call-start"; readonly index: number; readonly name: string; readonly id?: string }
  | { readonly kind: "arguments"; readonly index: number; readonly text: string }
  /** `problem` says why the arguments are not a JSON object; they were still delivered as the model wrote them. */
  | { readonly kind: "call-end"; readonly index: number; readonly problem?: string }
  /** An unknown key of a call; answers omit it. */
  | { readonly kind: "ignored"; readonly text: string };

export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** Longest run of white space that is held back to see whether markup follows. */
const maxHeldSpace = 1024;

/**
 * Collects a machine's events. White space next to markup is dropped (around reasoning, before a call and between calls);
 * all other text is passed on unchanged.
 */
export class EventSink {
  #events: OutputEvent[] = [];
  #numCalls = 0;
  #heldContent = "";
  #heldReasoning = "";
  #hasContent = false;
  #hasReasoning = false;
  /** Whether a call has begun and not ended. */
  #isCalling = false;
  /** Markup around the answer, which is not part of it. */
  readonly #answerTags: readonly string[];
  /** What may be the beginning of an answer tag. */
  #heldTag = "";
  readonly #reasoningSpans: TextSpan[] = [];
  #reasoningStart: number | undefined;

  /** No tag may be a prefix of another. */
  constructor(answerTags: readonly string[] = []) {
    this.#answerTags = answerTags;
  }

  get numCalls(): number {
    return this.#numCalls;
  }

  get hasContent(): boolean {
    return this.#hasContent;
  }

  get hasReasoning(): boolean {
    return this.#hasReasoning;
  }

  content(text: string): void {
    if (this.#answerTags.length === 0) this.#content(text);
    else this.#content(this.#withoutAnswerTags(text));
  }

  #withoutAnswerTags(text: string): string {
    let kept = "";
    let rest = this.#heldTag + text;
    while (rest !== "") {
      const tag = this.#answerTags.find((candidate) => rest.startsWith(candidate));
      if (tag === undefined && this.#answerTags.some((candidate) => candidate.startsWith(rest))) break;
      if (tag === undefined) kept += rest.charAt(0);
      rest = rest.slice(tag?.length ?? 1);
    }
    this.#heldTag = rest;
    return kept;
  }

  /** What was held as a possible tag is text after all. */
  #releaseTag(): void {
    this.#content(this.#heldTag);
    this.#heldTag = "";
  }

  #content(text: string): void {
    if (text === "") return;
    this.#heldReasoning = "";
    const dropsLead = !this.#hasContent && this.#hasReasoning;
    this.#heldContent += dropsLead && this.#heldContent === "" ? text.trimStart() : text;
    const solid = this.#heldContent.trimEnd().length;
    const length = this.#heldContent.length - solid > maxHeldSpace ? this.#heldContent.length : solid;
    if (length === 0) return;
    this.#hasContent = true;
    this.#text("content", this.#heldContent.slice(0, length));
    this.#heldContent = this.#heldContent.slice(length);
  }

  reasoning(text: string): void {
    this.#heldReasoning += this.#hasReasoning || this.#heldReasoning !== "" ? text : text.trimStart();
    const length = this.#heldReasoning.trimEnd().length;
    if (length === 0) return;
    this.#hasReasoning = true;
    this.#text("reasoning", this.#heldReasoning.slice(0, length));
    this.#heldReasoning = this.#heldReasoning.slice(length);
  }

  /** Marks where reasoning begins, in UTF-16 units of the output, without its markup. */
  beginReasoning(offset: number): void {
    this.#reasoningStart = offset;
  }

  endReasoning(offset: number): void {
    if (this.#reasoningStart !== undefined)
      this.#reasoningSpans.push({ start: this.#reasoningStart, end: offset });
    this.#reasoningStart = undefined;
  }

  get reasoningSpans(): readonly TextSpan[] {
    return this.#reasoningSpans;
  }

  beginCall(name: string, id?: string): void {
    this.#releaseTag();
    this.#heldContent = "";
    this.#heldReasoning = "";
    this.#isCalling = true;
    const index = this.#numCalls++;
    this.#events.push({ kind: "call-start", index, name, ...(id === undefined ? {} : { id }) });
  }

  arguments(text: string): void {
    this.#text("arguments", text);
  }

  ignore(text: string): void {
    this.#events.push({ kind: "ignored", text });
  }

  endCall(problem?: string): void {
    if (!this.#isCalling) return;
    this.#isCalling = false;
    const index = this.#numCalls - 1;
    this.#events.push({ kind: "call-end", index, ...(problem === undefined ? {} : { problem }) });
  }

  /** The output is complete: trailing white space is kept only if there were no calls. */
  finish(): void {
    this.#releaseTag();
    if (this.#numCalls === 0 && this.#heldContent !== "") this.#text("content", this.#heldContent);
    this.#heldContent = "";
  }

  take(): readonly OutputEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #text(kind: "content" | "reasoning" | "arguments", text: string): void {
    if (text === "") return;
    const last = this.#events.at(-1);
    const joined = last?.kind === kind ? last.text + text : text;
    const event: OutputEvent =
      kind === "arguments" ? { kind, index: this.#numCalls - 1, text: joined } : { kind, text: joined };
    if (last?.kind === kind) this.#events[this.#events.length - 1] = event;
    else this.#events.push(event);
  }
}
