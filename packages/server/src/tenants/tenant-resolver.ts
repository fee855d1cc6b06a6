import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type Account, defaultTenant } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { anyone, type CheckedKey, type OwnerId, ownerOf } from "./ownership.js";
import {
  type LaneDeadlines,
  tenantPattern,
  type TenantSettings,
  type TenantSource,
} from "./tenant-settings.js";

/** What identifies a tenant. */
export interface TenantEvidence {
  readonly headers: IncomingHttpHeaders;
  /** Identity of the request's API key, if keys are required. */
  readonly key: CheckedKey | undefined;
  /** The body's `user`. */
  readonly user?: string | null | undefined;
}

export const tenantHeader = "x-tenant-id";

/** Finds a request's tenant. What a client can invent counts only if the operator trusts it. */
export class TenantResolver {
  #settings: TenantSettings;
  #source: TenantSource;
  readonly #sharesPrefixes: boolean;

  constructor(settings: TenantSettings, prefixCacheSharing: "tenant" | "all" = "tenant") {
    this.#settings = settings;
    this.#sharesPrefixes = prefixCacheSharing === "all";
    this.#source = sourceOf(settings);
  }

  /** For requests from now on. Throws `invalid_option` where lanes change: requests in the queue have theirs by number. */
  replace(settings: TenantSettings): void {
    if (String(settings.lanes) !== String(this.#settings.lanes))
      throw new OctavoError(
        "invalid_option",
        "tenants: lanes cannot change while the server runs; restart it",
        {
          param: "tenants",
        },
      );
    this.#settings = settings;
    this.#source = sourceOf(settings);
  }

  accountOf(evidence: TenantEvidence): Account {
    const { tenants, lanes, defaultLane, unknownTenants } = this.#settings;
    const named = this.#nameOf(evidence) ?? defaultTenant;
    const terms = Object.hasOwn(tenants, named) ? tenants[named] : undefined;
    const tenant = terms === undefined && unknownTenants === "default" ? defaultTenant : named;
    const lane = evidence.key?.lane ?? terms?.lane ?? defaultLane;
    const owner = this.ownerOf(evidence);
    return {
      tenant,
      lane: lanes.indexOf(lane),
      ...(!this.#sharesPrefixes && owner !== anyone && { cacheScope: owner }),
      ...(terms?.weight !== undefined && { weight: terms.weight }),
      ...(terms?.maxQueuedRequests !== undefined && { maxQueuedRequests: terms.maxQueuedRequests }),
      ...(terms?.maxQueuedTokens !== undefined && { maxQueuedTokens: terms.maxQueuedTokens }),
    };
  }

  /** By the name that was given, even where several names are accounted to one tenant. */
  ownerOf(evidence: TenantEvidence): OwnerId {
    const { key } = evidence;
    const source = key?.tenantFrom ?? (key?.tenant === undefined ? this.#settings.tenantFrom : undefined);
    const speaksForTenants = source === "header" || source === "user";
    return ownerOf(key, this.#nameOf(evidence) ?? key?.tenant, speaksForTenants);
  }

  /** The deadlines of the lane, if it has any. */
  deadlinesOf({ lane = 0 }: Account): LaneDeadlines {
    const { lanes, laneDeadlines } = this.#settings;
    const named = lanes[lane] ?? "";
    return (Object.hasOwn(laneDeadlines, named) ? laneDeadlines[named] : undefined) ?? {};
  }

  laneName(lane: number): string {
    return this.#settings.lanes[lane] ?? String(lane);
  }

  #nameOf({ headers, key, user }: TenantEvidence): string | undefined {
    switch (key?.tenantFrom ?? this.#source) {
      case "key":
        return key?.tenant;
      case "header": {
        const header = headers[tenantHeader];
        return typeof header === "string" && tenantPattern.test(header) ? header : key?.tenant;
      }
      case "user":
        return user ? userTenant(user) : key?.tenant;
      case "none":
        return undefined;
    }
  }
}

function sourceOf(settings: TenantSettings): TenantSource {
  const keysDecide = settings.keys.some(({ tenant }) => tenant !== undefined);
  return settings.tenantFrom ?? (keysDecide ? "key" : "header");
}

/** Users may have any name; one that is not valid for a tenant is replaced by its digest. */
function userTenant(user: string): string {
  if (tenantPattern.test(user)) return user;
  return `user-${createHash("sha256").update(user, "utf8").digest("hex").slice(0, 16)}`;
}
