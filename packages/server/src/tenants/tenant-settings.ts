import { OctavoError } from "@octavo/protocol/errors";
import type { OptionType } from "@octavo/protocol/options";

/** Where a request's tenant comes from; `none`: all requests are one tenant's. */
export const tenantSources = ["key", "header", "user", "none"] as const;
export type TenantSource = (typeof tenantSources)[number];

/** Settings of a tenant. */
export interface TenantTerms {
  /** Share of the machine under the fair policy, relative to other tenants; default 1. */
  readonly weight?: number | undefined;
  /** Default `defaultLane`. */
  readonly lane?: string | undefined;
  readonly maxQueuedRequests?: number | undefined;
  readonly maxQueuedTokens?: number | undefined;
}

/** An API key and the identity of its holder. The key itself or its SHA-256, 64 hexadecimal digits. */
export type TenantKey = ({ readonly key: string } | { readonly sha256: string }) & KeyIdentity;

export interface KeyIdentity {
  readonly tenant?: string | undefined;
  /** Overrides the tenant's. */
  readonly lane?: string | undefined;
  /** Where the tenant of this key's requests comes from, for a gateway that serves several; default as for all keys. */
  readonly tenantFrom?: TenantSource | undefined;
}

/** Deadlines of a lane's requests, from their arrival; 0: none. The server's apply where one is missing. */
export interface LaneDeadlines {
  /** For admission. */
  readonly queueTimeoutMs?: number | undefined;
  /** For the first token. */
  readonly firstTokenTimeoutMs?: number | undefined;
  /** For the whole answer. */
  readonly timeoutMs?: number | undefined;
}

export interface TenantSettings {
  /** Default `key` where any key has a tenant, else `header`. */
  readonly tenantFrom?: TenantSource | undefined;
  /** Priority classes, the most urgent first. */
  readonly lanes: readonly string[];
  readonly defaultLane: string;
  /** By lane; other lanes have the server's. */
  readonly laneDeadlines: Readonly<Record<string, LaneDeadlines>>;
  /** By name. */
  readonly tenants: Readonly<Record<string, TenantTerms>>;
  /** Whether other tenants count as themselves, or as the tenant `default`. */
  readonly unknownTenants: "own" | "default";
  readonly keys: readonly TenantKey[];
}

export const defaultTenantSettings: TenantSettings = {
  lanes: ["interactive", "standard", "batch"],
  defaultLane: "standard",
  laneDeadlines: {},
  tenants: {},
  unknownTenants: "own",
  keys: [],
};

/** Names that are safe in headers, logs and labels. */
export const tenantPattern = /^[\w.:@/+=-]{1,128}$/;

/** A server has at most so many. */
export const mostLanes = 16;

/** Tenant settings; the command reads them from a file. */
export const tenantSettings: OptionType<TenantSettings> = {
  expects: "tenant settings",
  accepts: (value) => typeof value === "object" && value !== null,
  parse(text) {
    throw wrongTenants("tenants", `expected ${tenantSettings.expects}, not ${JSON.stringify(text)}`);
  },
  show: () => "",
};

/** Throws `invalid_option` where settings contradict themselves. */
export function checkTenantSettings(settings: TenantSettings, source: string): void {
  const { lanes, defaultLane, laneDeadlines, tenants, keys } = settings;
  if (lanes.length === 0 || lanes.length > mostLanes)
    throw wrongTenants(source, `lanes: 1 to ${mostLanes} are needed, not ${lanes.length}`);
  if (new Set(lanes).size !== lanes.length) throw wrongTenants(source, "lanes: one is named twice");
  const checkLane = (lane: string | undefined, where: string): void => {
    if (lane === undefined || lanes.includes(lane)) return;
    throw wrongTenants(
      source,
      `${where}: there is no lane ${JSON.stringify(lane)}; the lanes are ${lanes.join(", ")}`,
    );
  };
  checkLane(defaultLane, "default_lane");
  for (const given of Object.keys(laneDeadlines)) checkLane(given, "laneDeadlines");
  for (const [tenant, { lane }] of Object.entries(tenants)) checkLane(lane, `tenants.${tenant}.lane`);
  for (const [index, entry] of keys.entries()) checkLane(entry.lane, `keys[${index}].lane`);
  const seen = new Set<string>();
  for (const [index, entry] of keys.entries()) {
    const identity = "key" in entry ? `key ${entry.key}` : `sha256 ${entry.sha256}`;
    if (seen.has(identity)) throw wrongTenants(source, `keys[${index}]: this key was given before`);
    seen.add(identity);
  }
}

export function wrongTenants(source: string, problem: string, cause?: unknown): OctavoError {
  return new OctavoError("invalid_option", `${source}: ${problem}`, { param: "tenants", cause });
}
