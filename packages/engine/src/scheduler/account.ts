/** Whom a request is accounted to, and how it stands beside others. */
export interface Account {
  readonly tenant: string;
  /** Priority class: 0, the default, is the most urgent. */
  readonly lane?: number;
  /** The tenant's share beside others' under the fair policy; default 1. */
  readonly weight?: number;
  /** Of the tenant's requests, as many may wait to be admitted; default the engine's bound. */
  readonly maxQueuedRequests?: number;
  /** Prompt tokens that they may have together; default the engine's bound. */
  readonly maxQueuedTokens?: number;
}

/** The tenant of requests that name none. */
export const defaultTenant = "default";

export const defaultAccount: Account = { tenant: defaultTenant };
