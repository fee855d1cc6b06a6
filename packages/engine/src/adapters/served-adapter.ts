import type { Adapter, Program } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { AdapterSpec, LoadedAdapter } from "./adapter.js";

let numServed = 0;

/** An adapter with the requests that hold it; freed when it has been retired and the last of them let go. */
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
  #isRetired = false;
  #successor: ServedAdapter | undefined;

  constructor(
    spec: AdapterSpec,
    packed: {
      readonly handle: Adapter;
      readonly byteLength: number;
      readonly rank: number;
      /** Which it was made for; none is looked at where there is none. */
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

  /** What is served in its place by now, or itself: a request may have come before a replacement and be queued after it. */
  get current(): ServedAdapter {
    return this.#successor?.current ?? this;
  }

  /** Throws `model_not_found` once it takes no more requests, `invalid_request` for a program that it was not made for. */
  checkServed(program: Program): void {
    if (this.#isRetired) throw notServed(this.name);
    if (this.#program === undefined || this.#program === program) return;
    const message = `The adapter ${JSON.stringify(this.name.slice(0, 200))} was loaded for another model; take one from this model's \`adapters\`.`;
    throw new OctavoError("invalid_request", message, { param: "adapter" });
  }

  retain(): void {
    this.#numRequests += 1;
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
