/** A LoRA adapter to be loaded; see `Adapters`. */
export interface AdapterSpec {
  /** By which requests choose it. */
  readonly name: string;
  /** A folder as PEFT saves it, or a repository of the Hugging Face hub. */
  readonly path: string;
  /** What it is said to be an adapter of; default the served model. */
  readonly baseModelName?: string | undefined;
}

/** An adapter in memory, for requests to name. */
export interface LoadedAdapter extends AdapterSpec {
  /** Never given to another one, not even to one of the same name. */
  readonly id: number;
  /** Largest of its modules'. */
  readonly rank: number;
  /** Bytes of its packed matrices. */
  readonly byteLength: number;
  /** Requests that use it now. */
  readonly numRequests: number;
}

/** The adapters that a model serves beside itself; they come and go while it runs. */
export interface Adapters {
  /** Most that take part in one step. */
  readonly maxLoras: number;
  /** In the order in which they were loaded. */
  list(): readonly LoadedAdapter[];
  find(name: string): LoadedAdapter | undefined;
  /**
   * Throws `invalid_request` when the name is taken (unless `inPlace`) or none more may be loaded, and what reading its
   * files throws: `artifact_not_found`, `artifact_invalid`, `artifact_unsupported`, the hub's codes.
   */
  load(spec: AdapterSpec, options?: LoadAdapterOptions): Promise<LoadedAdapter>;
  /**
   * Takes no new requests for the adapter; its memory is freed when those it has have ended. Throws `model_not_found`.
   */
  unload(name: string): LoadedAdapter;
}

export interface LoadAdapterOptions {
  /** Takes the place of a loaded one of the same name, whose requests still end with it. */
  readonly inPlace?: boolean;
  readonly signal?: AbortSignal;
}
