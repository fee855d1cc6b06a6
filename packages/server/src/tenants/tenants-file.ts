import { readFileSync, statSync } from "node:fs";
import { OctavoError, systemProblem, parseWith } from "@octavo/protocol";
import { formatBinaryBytes } from "@octavo/protocol/options";
import { z } from "zod";
import {
  checkTenantSettings,
  defaultTenantSettings,
  type KeyIdentity,
  type LaneDeadlines,
  mostLanes,
  tenantPattern,
  type TenantSettings,
  tenantSources,
  wrongTenants as invalid,
} from "./tenant-settings.js";

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
    /** Digest of the key, so that the file holds no secret. */
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
 * Reads a tenants file: JSON, fields in snake case, no others allowed. `source` names it in errors. Throws
 * `invalid_option` saying what is wrong.
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

/** The settings in a file. Throws `invalid_option` as `parseTenantSettings`, and where it cannot be read. */
export function readTenantsFile(path: string): TenantSettings {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > mostFileBytes) throw invalid(path, `${formatBinaryBytes(size)}, at most 4 MiB are read`);
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof OctavoError) throw cause;
    throw invalid(path, systemProblem(cause), cause);
  }
  return parseTenantSettings(text, path);
}

function middleOf(lanes: readonly string[]): string {
  const { defaultLane } = defaultTenantSettings;
  return lanes.includes(defaultLane)
    ? defaultLane
    : (lanes[Math.floor((lanes.length - 1) / 2)] ?? defaultLane);
}
