/** Whom a request is accounted to, and its priority beside others. */
export interface Account {
  readonly tenant: string;
  /** Priority class: 0, the default, is the most urgent. */
  readonly lane?: number;
  /** The tenant's relative share under the fair policy; default 1. */
  readonly weight?: number;
  /** Requests of the tenant that may wait for admission; default the engine's limit. */
  readonly maxQueuedRequests?: number;
  /** Prompt tokens of these requests together; default the engine's limit. */
  readonly maxQueuedTokens?: number;
  /**
   * Cached prefixes and outputs kept for drafting are shared only between requests of the same scope: what is found there, and
   * how fast, tells what was sent. Default: all requests without a scope share.
   */
  readonly cacheScope?: string;
}

/** The tenant of requests that name none. */
export const defaultTenant = "default";

export const defaultAccount: Account = { tenant: defaultTenant };
