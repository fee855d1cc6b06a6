import { createHash } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from "jose";
import { z } from "zod";

export const jwtSchema = z.strictObject({
  /** Where the issuer's public keys are. Never taken from a token. */
  jwks_url: z.url({ protocol: /^https?$/ }),
  issuer: z.string().min(1),
  audience: z.string().min(1),
  algorithms: z
    .array(z.enum(["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]))
    .min(1)
    .default(["RS256", "ES256", "EdDSA"]),
  /** Claims that say who calls and what it may. */
  tenant_claim: z.string().min(1).default("sub"),
  models_claim: z.string().min(1).optional(),
  tags_claim: z.string().min(1).optional(),
  leeway_seconds: z.number().min(0).max(300).default(30),
});

export type JwtConfig = z.output<typeof jwtSchema>;

export interface TokenCaller {
  readonly tenant: string;
  readonly models: readonly string[] | undefined;
  readonly tags: readonly string[];
}

interface Verified {
  readonly caller: TokenCaller;
  readonly untilMs: number;
}

/** A token that was verified is not verified again for so long, and not beyond its expiry. */
const verifiedForMs = 60_000;
const mostVerified = 10_000;

/** JSON Web Tokens of one issuer. Its keys are fetched when a token needs them, kept, and not asked for in vain more than now and then. */
export class TokenVerifier {
  readonly #config: JwtConfig;
  readonly #keys: ReturnType<typeof createRemoteJWKSet>;
  readonly #nowMs: () => number;
  readonly #verified = new Map<string, Verified>();

  constructor(config: JwtConfig, nowMs: () => number) {
    this.#config = config;
    this.#nowMs = nowMs;
    this.#keys = createRemoteJWKSet(new URL(config.jwks_url), {
      cacheMaxAge: 600_000,
      cooldownDuration: 30_000,
      timeoutDuration: 5000,
    });
  }

  /** Throws `unauthorized` for a token that is none, and `store_unavailable` where the issuer's keys cannot be had. */
  async verify(token: string): Promise<TokenCaller> {
    const digest = createHash("sha256").update(token).digest("base64");
    const known = this.#verified.get(digest);
    if (known !== undefined && known.untilMs > this.#nowMs()) return known.caller;
    const { issuer, audience, algorithms, leeway_seconds: clockTolerance } = this.#config;
    let payload: JWTPayload;
    try {
      ({ payload } = await jwtVerify(token, this.#keys, {
        issuer,
        audience,
        algorithms,
        clockTolerance,
        requiredClaims: ["exp"],
        currentDate: new Date(this.#nowMs()),
      }));
    } catch (cause) {
      if (
        cause instanceof errors.JOSEError &&
        !(cause instanceof errors.JWKSTimeout) &&
        cause.code !== "ERR_JOSE_GENERIC"
      )
        throw new OctavoError("unauthorized", `The token is not valid: ${cause.code}.`, { cause });
      throw new OctavoError("store_unavailable", "The keys of the token's issuer cannot be had.", { cause });
    }
    const caller = this.#callerOf(payload);
    if (this.#verified.size >= mostVerified) this.#verified.delete(this.#verified.keys().next().value!);
    const untilMs = Math.min(payload.exp! * 1000, this.#nowMs() + verifiedForMs);
    this.#verified.set(digest, { caller, untilMs });
    return caller;
  }

  #callerOf(payload: JWTPayload): TokenCaller {
    const { tenant_claim: tenantClaim, models_claim: modelsClaim, tags_claim: tagsClaim } = this.#config;
    const tenant = payload[tenantClaim];
    if (typeof tenant !== "string" || tenant === "")
      throw new OctavoError("unauthorized", `The token has no claim ${tenantClaim}.`);
    return {
      tenant,
      models: modelsClaim === undefined ? undefined : namesOf(payload[modelsClaim]),
      tags: tagsClaim === undefined ? [] : namesOf(payload[tagsClaim]),
    };
  }
}

/** A list of names, or names with blanks between them as in `scope`; a claim that is not there allows nothing. */
function namesOf(claim: unknown): string[] {
  if (typeof claim === "string") return claim.split(" ").filter((entry) => entry !== "");
  return Array.isArray(claim) ? claim.filter((entry) => typeof entry === "string") : [];
}
