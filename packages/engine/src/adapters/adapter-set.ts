import { OctavoError } from "@octavo/protocol/errors";
import type { AdaptableModule } from "@octavo/artifacts/program/model-plan";
import type { Adapters, AdapterSpec, LoadAdapterOptions } from "./adapter.js";
import { type AdapterTarget, packAdapter } from "./pack-adapter.js";
import { readAdapter } from "@octavo/artifacts/adapters/read-adapter";
import { notServed, ServedAdapter } from "./served-adapter.js";

export interface AdapterSetOptions {
  readonly target: AdapterTarget;
  readonly adaptable: ReadonlyMap<string, AdaptableModule>;
  readonly maxLoras: number;
  /** Adapters in memory at a time, not counting unloaded ones still in use. */
  readonly maxLoaded: number;
  readonly maxRank: number;
  /** The folder of a path or of a repository on the hub. */
  readonly resolve: (path: string, signal: AbortSignal | undefined) => Promise<string>;
}

/** The adapters of one loaded model. Dispose it after the engine and before the program. */
export class AdapterSet implements Adapters, Disposable {
  readonly #options: AdapterSetOptions;
  readonly #byName = new Map<string, ServedAdapter>();
  /** Names of adapters that make no room for others. */
  readonly #kept = new Set<string>();
  /** Names of adapters being loaded. */
  readonly #arriving = new Set<string>();
  #isDisposed = false;

  constructor(options: AdapterSetOptions) {
    this.#options = options;
  }

  get maxLoras(): number {
    return this.#options.maxLoras;
  }

  list(): readonly ServedAdapter[] {
    return [...this.#byName.values()];
  }

  find(name: string): ServedAdapter | undefined {
    return this.#byName.get(name);
  }

  async load(
    spec: AdapterSpec,
    { inPlace = false, isKept = false, signal }: LoadAdapterOptions = {},
  ): Promise<ServedAdapter> {
    const { name } = spec;
    this.#checkRoom(name, inPlace);
    this.#arriving.add(name);
    try {
      const adapter = await this.#read(spec, signal);
      if (this.#isDisposed) {
        adapter.retire();
        throw new OctavoError("shutting_down", "The model is shutting down and loads no more adapters.");
      }
      if (!this.#makeRoom(name)) {
        adapter.retire();
        throw this.#isFull();
      }
      if (isKept) this.#kept.add(name);
      this.#byName.get(name)?.retire(adapter);
      this.#byName.delete(name);
      this.#byName.set(name, adapter);
      return adapter;
    } finally {
      this.#arriving.delete(name);
    }
  }

  unload(name: string): ServedAdapter {
    const adapter = this.#byName.get(name);
    if (adapter === undefined) throw notServed(name);
    this.#byName.delete(name);
    this.#kept.delete(name);
    adapter.retire();
    return adapter;
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const name of this.#byName.keys()) this.unload(name);
  }

  #checkRoom(name: string, inPlace: boolean): void {
    const refuse = (problem: string, param: string): never => {
      throw new OctavoError("invalid_request", `${param}: ${problem}`, { param });
    };
    if (name === "") refuse("an adapter needs a name", "lora_name");
    const shown = JSON.stringify(name.slice(0, 200));
    if (this.#arriving.has(name)) refuse(`the adapter ${shown} is being loaded already`, "lora_name");
    const isKnown = this.#byName.has(name);
    if (isKnown && !inPlace) {
      refuse(
        `the adapter ${shown} is loaded already; set load_inplace to put another in its place`,
        "lora_name",
      );
    }
    if (isKnown || this.#numTaken < this.#options.maxLoaded) return;
    // the room that others make is taken when the adapter has been read, so that one that cannot be read costs none
    if (this.#arriving.size >= this.#options.maxLoaded || this.#leastRecentlyUsed() === undefined)
      throw this.#isFull();
  }

  get #numTaken(): number {
    return new Set([...this.#byName.keys(), ...this.#arriving]).size;
  }

  /** Unloads an unused adapter if there is no room for `name`; false if all are in use. */
  #makeRoom(name: string): boolean {
    if (this.#byName.has(name) || this.#byName.size < this.#options.maxLoaded) return true;
    const unused = this.#leastRecentlyUsed();
    if (unused !== undefined) this.unload(unused.name);
    return unused !== undefined;
  }

  #leastRecentlyUsed(): ServedAdapter | undefined {
    return this.list()
      .filter(
        ({ name, numRequests }) => numRequests === 0 && !this.#kept.has(name) && !this.#arriving.has(name),
      )
      .toSorted((a, b) => a.lastUse - b.lastUse)[0];
  }

  #isFull(): OctavoError {
    const { maxLoaded } = this.#options;
    const message = `lora_name: ${maxLoaded} adapters are loaded (--max-cpu-loras), and each is in use or named by --lora-modules; unload one`;
    return new OctavoError("invalid_request", message, { param: "lora_name" });
  }

  async #read(spec: AdapterSpec, signal: AbortSignal | undefined): Promise<ServedAdapter> {
    const { target, adaptable, maxRank, resolve } = this.#options;
    const folder = await resolve(spec.path, signal);
    const modules = readAdapter(folder, adaptable, maxRank);
    const packed = await packAdapter(target, modules, signal);
    const rank = Math.max(...modules.map((module) => module.rank));
    return new ServedAdapter(spec, { ...packed, rank, program: target.program });
  }
}
