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
}

/** The tenant of requests that name none. */
export const defaultTenant = "default";

export const defaultAccount: Account = { tenant: defaultTenant };
