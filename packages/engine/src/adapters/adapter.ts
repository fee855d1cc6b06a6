/** A LoRA adapter to be loaded; see `Adapters`. */
export interface AdapterSpec {
  /** The name that requests use. */
  readonly name: string;
  /** A folder as PEFT saves it, or a repository of the Hugging Face hub. */
  readonly path: string;
  /** The model it claims to adapt; default the served model. */
  readonly baseModelName?: string | undefined;
}

/** A loaded adapter that requests can name. */
export interface LoadedAdapter extends AdapterSpec {
  /** Unique, also among adapters of the same name. */
  readonly id: number;
  /** The largest rank of its modules. */
  readonly rank: number;
  /** Bytes of its packed matrices. */
  readonly byteLength: number;
  /** Requests that use it now. */
  readonly numRequests: number;
}

/** The adapters that a model serves; they can be loaded and unloaded while it runs. */
export interface Adapters {
  /** Adapters in one step, at most. */
  readonly maxLoras: number;
  /** In order of loading. */
  list(): readonly LoadedAdapter[];
  find(name: string): LoadedAdapter | undefined;
  /**
   * Where no more fit, the unused adapter that was used least recently is unloaded, once the new one has been read. Throws
   * `invalid_request` if the name is taken (unless `inPlace`) or all that are loaded are in use, and the errors of reading its files:
   * `artifact_not_found`, `artifact_invalid`, `artifact_unsupported`, the hub's codes.
   */
  load(spec: AdapterSpec, options?: LoadAdapterOptions): Promise<LoadedAdapter>;
  /** Accepts no new requests for the adapter; its memory is freed when the last of its requests ends. Throws `model_not_found`. */
  unload(name: string): LoadedAdapter;
}

/** How a LoRA adapter joins those that are loaded. */
export interface LoadAdapterOptions {
  /** Replaces a loaded adapter of the same name; its requests still complete with the old one. */
  readonly inPlace?: boolean;
  /** It is never unloaded to make room for another. */
  readonly isKept?: boolean;
  readonly signal?: AbortSignal;
}
