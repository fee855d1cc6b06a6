import { readFileSync, statSync } from "node:fs";
import { OctavoError, parseWith } from "@octavo/protocol";
import { formatBinaryBytes, type OptionType } from "@octavo/protocol/options";
import { z } from "zod";

/** Where a request's tenant is taken from; `none`: all are one. */
export const tenantSources = ["key", "header", "user", "none"] as const;
export type TenantSource = (typeof tenantSources)[number];

/** What is known of a tenant beside its name. */
export interface TenantTerms {
  /** Share beside other tenants' under the fair policy; default 1. */
  readonly weight?: number | undefined;
  /** Default `defaultLane`. */
  readonly lane?: string | undefined;
  readonly maxQueuedRequests?: number | undefined;
  readonly maxQueuedTokens?: number | undefined;
}

/** An API key and whom its holder speaks for. The key itself or its SHA-256, 64 hexadecimal digits. */
export type TenantKey = ({ readonly key: string } | { readonly sha256: string }) & KeyIdentity;

export interface KeyIdentity {
  readonly tenant?: string | undefined;
  /** Overrides the tenant's. */
  readonly lane?: string | undefined;
  /** Where this key's requests have their tenant from, for a gateway that says so; default as for all. */
  readonly tenantFrom?: TenantSource | undefined;
}

/** When requests of a lane are due, from their arrival; 0: never. What is left out is as the server has it. */
export interface LaneDeadlines {
  /** To be admitted. */
  readonly queueTimeoutMs?: number | undefined;
  /** To have their first token. */
  readonly firstTokenTimeoutMs?: number | undefined;
  /** To be complete. */
  readonly timeoutMs?: number | undefined;
}

export interface TenantSettings {
  /** Default `key` where any key has a tenant, else `header`. */
  readonly tenantFrom?: TenantSource | undefined;
  /** Priority classes, the most urgent first. */
  readonly lanes: readonly string[];
  readonly defaultLane: string;
  /** By name, of lanes that have some of their own. */
  readonly laneDeadlines: Readonly<Record<string, LaneDeadlines>>;
  /** By name. */
  readonly tenants: Readonly<Record<string, TenantTerms>>;
  /** Whether a tenant that is not among them counts as itself, or as the tenant `default`. */
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

/** Names as headers, logs and labels can carry them. */
export const tenantPattern = /^[\w.:@/+=-]{1,128}$/;

const mostLanes = 16;
const mostKeys = 10_000;
const name = z.string().regex(tenantPattern, "must be 1 to 128 of letters, digits and . : @ / + = - _");
const bound = z.int().min(1);

const terms = z.strictObject({
  weight: z.number().gt(0).max(1e6).optional(),
  lane: name.optional(),
  max_queued_requests: bound.optional(),
  max_queued_tokens: bound.optional(),
});

const timeout = z
  .int()
  .min(0)
  .max(2 ** 31 - 1)
  .optional();

const laneEntry = z.union([
  name,
  z.strictObject({ name, queue_timeout_ms: timeout, ttft_timeout_ms: timeout, timeout_ms: timeout }),
]);

const key = z
  .strictObject({
    key: z.string().min(1).optional(),
    /** Of the key: the file then holds no secret. */
    sha256: z
      .string()
      .regex(/^[\da-f]{64}$/i, "must be 64 hexadecimal digits")
      .optional(),
    /** The environment variable that holds the key. */
    env: z.string().min(1).optional(),
    tenant: name.optional(),
    lane: name.optional(),
    tenant_from: z.enum(tenantSources).optional(),
  })
  .refine(
    (entry) => [entry.key, entry.sha256, entry.env].filter((given) => given !== undefined).length === 1,
    {
      error: "needs exactly one of key, sha256 and env",
    },
  );

const file = z.strictObject({
  tenant_from: z.enum(tenantSources).optional(),
  lanes: z.array(laneEntry).min(1).max(mostLanes).optional(),
  default_lane: name.optional(),
  tenants: z.record(name, terms).optional(),
  unknown_tenants: z.enum(["own", "default"]).optional(),
  keys: z.array(key).max(mostKeys).optional(),
});

/**
 * Reads a tenants file: JSON, fields in snake case, nothing else allowed in it. `source` names it in errors. Throws
 * `invalid_option` saying what of it is wrong.
 */
export function parseTenantSettings(
  text: string,
  source: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): TenantSettings {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid(source, `not valid JSON: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
  }
  let parsed: z.output<typeof file>;
  try {
    parsed = parseWith(file, value);
  } catch (thrown) {
    const message = OctavoError.from(thrown).message.replace(/^the request body: /, "");
    throw invalid(source, message, thrown);
  }
  const keys = (parsed.keys ?? []).map(({ env, sha256, key: given, tenant, lane, tenant_from }, index) => {
    const identity: KeyIdentity = { tenant, lane, tenantFrom: tenant_from };
    if (sha256 !== undefined) return { sha256: sha256.toLowerCase(), ...identity };
    const secret = env === undefined ? given : environment[env];
    if (secret) return { key: secret, ...identity };
    throw invalid(source, `keys[${index}].env: the environment has no variable ${env}`);
  });
  const lanes =
    parsed.lanes?.map((given) => (typeof given === "string" ? given : given.name)) ??
    defaultTenantSettings.lanes;
  const deadlines = (parsed.lanes ?? []).flatMap((given): readonly (readonly [string, LaneDeadlines])[] => {
    if (typeof given === "string") return [];
    const { queue_timeout_ms, ttft_timeout_ms, timeout_ms } = given;
    const own = {
      queueTimeoutMs: queue_timeout_ms,
      firstTokenTimeoutMs: ttft_timeout_ms,
      timeoutMs: timeout_ms,
    };
    return [[given.name, own]];
  });
  const settings: TenantSettings = {
    tenantFrom: parsed.tenant_from,
    lanes,
    defaultLane: parsed.default_lane ?? middleOf(lanes),
    laneDeadlines: Object.fromEntries(deadlines),
    tenants: Object.fromEntries(
      Object.entries(parsed.tenants ?? {}).map(([tenant, given]) => [
        tenant,
        {
          weight: given.weight,
          lane: given.lane,
          maxQueuedRequests: given.max_queued_requests,
          maxQueuedTokens: given.max_queued_tokens,
        },
      ]),
    ),
    unknownTenants: parsed.unknown_tenants ?? "own",
    keys,
  };
  checkTenantSettings(settings, source);
  return settings;
}

const mostFileBytes = 4 * 2 ** 20;

/** Tenant settings; as text the name of a file that holds them. */
export const tenantsFile: OptionType<TenantSettings> = {
  expects: "tenant settings",
  accepts: (value) => typeof value === "object" && value !== null,
  parse(path) {
    let text: string;
    try {
      const { size } = statSync(path);
      if (size > mostFileBytes) throw invalid(path, `${formatBinaryBytes(size)}, at most 4 MiB are read`);
      text = readFileSync(path, "utf8");
    } catch (cause) {
      if (cause instanceof OctavoError) throw cause;
      const { code = "unknown" } = cause as NodeJS.ErrnoException;
      throw invalid(path, code === "ENOENT" ? "there is no such file" : `cannot be read (${code})`, cause);
    }
    return parseTenantSettings(text, path);
  },
  show: () => "",
};

/** Throws `invalid_option` where settings contradict themselves. */
export function checkTenantSettings(settings: TenantSettings, source: string): void {
  const { lanes, defaultLane, laneDeadlines, tenants, keys } = settings;
  if (lanes.length === 0 || lanes.length > mostLanes)
    throw invalid(source, `lanes: 1 to ${mostLanes} are needed, not ${lanes.length}`);
  if (new Set(lanes).size !== lanes.length) throw invalid(source, "lanes: one is named twice");
  const checkLane = (lane: string | undefined, where: string): void => {
    if (lane === undefined || lanes.includes(lane)) return;
    throw invalid(
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
    if (seen.has(identity)) throw invalid(source, `keys[${index}]: this key was given before`);
    seen.add(identity);
  }
}

function middleOf(lanes: readonly string[]): string {
  const { defaultLane } = defaultTenantSettings;
  return lanes.includes(defaultLane)
    ? defaultLane
    : (lanes[Math.floor((lanes.length - 1) / 2)] ?? defaultLane);
}

function invalid(source: string, problem: string, cause?: unknown): OctavoError {
  return new OctavoError("invalid_option", `${source}: ${problem}`, { param: "tenants", cause });
}
