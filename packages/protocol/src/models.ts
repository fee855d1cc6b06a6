/** An entry of `/v1/models`. `max_model_len` is the context length that this server allows, in tokens. */
export interface ModelCard {
  readonly id: string;
  readonly object: "model";
  readonly created: number;
  readonly owned_by: "octavo";
  /** The artifact behind a served name. */
  readonly root: string;
  readonly parent: string | null;
  readonly max_model_len: number;
  /** Of a server of several models: whether it is in memory. */
  readonly state?: "loaded" | "loading" | "unloaded";
  readonly permission: readonly ModelPermission[];
}

export interface ModelPermission {
  readonly id: string;
  readonly object: "model_permission";
  readonly created: number;
  readonly allow_create_engine: boolean;
  readonly allow_sampling: boolean;
  readonly allow_logprobs: boolean;
  readonly allow_search_indices: boolean;
  readonly allow_view: boolean;
  readonly allow_fine_tuning: boolean;
  readonly organization: string;
  readonly group: string | null;
  readonly is_blocking: boolean;
}

export interface ModelList {
  readonly object: "list";
  readonly data: readonly ModelCard[];
}
