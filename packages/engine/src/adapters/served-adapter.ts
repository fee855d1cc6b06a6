import type { Adapter, Program } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { AdapterSpec, LoadedAdapter } from "./adapter.js";

let numServed = 0;
let numUses = 0;

/** A loaded adapter, reference-counted by requests; freed once it is retired and no request uses it. */
export class ServedAdapter implements LoadedAdapter {
  readonly id = ++numServed;
  readonly name: string;
  readonly path: string;
  readonly baseModelName: string | undefined;
  readonly rank: number;
  readonly byteLength: number;
  readonly handle: Adapter;
  readonly #program: Program | undefined;
  #numRequests = 0;
  #lastUse = ++numUses;
  #isRetired = false;
  #successor: ServedAdapter | undefined;

  constructor(
    spec: AdapterSpec,
    packed: {
      readonly handle: Adapter;
      readonly byteLength: number;
      readonly rank: number;
      /** The program it was packed for; not checked if absent. */
      readonly program?: Program;
    },
  ) {
    this.name = spec.name;
    this.path = spec.path;
    this.baseModelName = spec.baseModelName;
    this.rank = packed.rank;
    this.byteLength = packed.byteLength;
    this.handle = packed.handle;
    this.#program = packed.program;
  }

  get numRequests(): number {
    return this.#numRequests;
  }

  /** Higher the later it was loaded or a request began to use it. */
  get lastUse(): number {
    return this.#lastUse;
  }

  /** The adapter that has replaced it by now, or itself: a request may arrive before a replacement and be queued after it. */
  get current(): ServedAdapter {
    return this.#successor?.current ?? this;
  }

  /** Throws `model_not_found` once retired, `invalid_request` for a program that it was not packed for. */
  checkServed(program: Program): void {
    if (this.#isRetired) throw notServed(this.name);
    if (this.#program === undefined || this.#program === program) return;
    const message = `The adapter ${JSON.stringify(this.name.slice(0, 200))} was loaded for another model; take one from this model's \`adapters\`.`;
    throw new OctavoError("invalid_request", message, { param: "adapter" });
  }

  retain(): void {
    this.#numRequests += 1;
    this.#lastUse = ++numUses;
  }

  release(): void {
    this.#numRequests -= 1;
    this.#freeWhenUnused();
  }

  retire(successor?: ServedAdapter): void {
    this.#isRetired = true;
    this.#successor = successor;
    this.#freeWhenUnused();
  }

  #freeWhenUnused(): void {
    if (this.#isRetired && this.#numRequests === 0) this.handle[Symbol.dispose]();
  }
}

export function notServed(name: string): OctavoError {
  return new OctavoError(
    "model_not_found",
    `There is no adapter ${JSON.stringify(name.slice(0, 200))} here.`,
    {
      param: "lora_name",
    },
  );
}
