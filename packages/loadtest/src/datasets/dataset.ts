/** One request to send, before it is phrased for an endpoint. */
export interface LoadCase {
  readonly prompt: string | readonly LoadMessage[];
  /** Output tokens to ask for (`max_tokens`); with `ignoreEos` the server is told to reach it. */
  readonly maxTokens: number;
  readonly ignoreEos: boolean;
  /** Arrival in a recorded trace, ms from its start. */
  readonly atMs?: number;
}

export interface LoadMessage {
  readonly role: string;
  readonly content: string;
}

/** Where cases come from. Everything drawn is drawn from the given seed, so the same flags give the same load. */
export interface LoadDataset {
  cases(count: number): readonly LoadCase[];
}
