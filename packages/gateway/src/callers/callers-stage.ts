import type { IncomingHttpHeaders } from "node:http";
import { type JsonFields, OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { anonymousCaller, type Exchange, type GatewayCaller } from "../exchange/exchange.js";
import type { MaybePromise } from "../exchange/maybe-promise.js";
import type { AdminRequest, AdminRoute, Stage, StageContext, StageDefinition } from "../exchange/stage.js";
import { type CallerKey, callerKeySchema, KeyFile, KeyRing, newCallerKey } from "./key-file.js";
import { jwtSchema, TokenVerifier } from "./token-verifier.js";

const callersSchema = z
  .strictObject({
    /** Read again within a second after it changed. */
    keys_file: z.string().min(1).optional(),
    keys: z.array(callerKeySchema).optional(),
    jwt: jwtSchema.optional(),
    /** Whether calls without a key are let in, as nobody. */
    anonymous: z.boolean().default(false),
  })
  .refine(
    ({ keys_file, keys, jwt, anonymous }) =>
      anonymous || [keys_file, keys, jwt].some((given) => given !== undefined),
    "lets nobody in: give keys_file, keys or jwt",
  );

export type CallersConfig = z.output<typeof callersSchema>;

const reloadEveryMs = 1000;
/** Longer credentials are not looked at. */
const mostCharacters = 8192;

class CallersStage implements Stage {
  readonly #config: CallersConfig;
  readonly #context: StageContext;
  readonly #ring: KeyRing;
  readonly #file: KeyFile | undefined;
  readonly #tokens: TokenVerifier | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly adminRoutes: readonly AdminRoute[];

  constructor(config: CallersConfig, context: StageContext) {
    this.#config = config;
    this.#context = context;
    this.#ring = new KeyRing(config.keys ?? []);
    this.#tokens = config.jwt === undefined ? undefined : new TokenVerifier(config.jwt, context.nowMs);
    if (config.keys_file !== undefined) {
      this.#file = new KeyFile(config.keys_file);
      this.#timer = setInterval(() => {
        this.#reload();
      }, reloadEveryMs).unref();
    }
    this.adminRoutes = [
      { method: "GET", path: "keys", handle: () => this.#list() },
      { method: "POST", path: "keys", handle: (request) => this.#create(request) },
      { method: "DELETE", path: "keys/*", handle: (request) => this.#remove(request) },
    ];
  }

  #reload(): void {
    try {
      if (this.#file!.reload())
        this.#context.log("info", "keys were read again", { keys: this.#file!.ring.entries.length });
    } catch (error) {
      this.#context.log("error", "keys could not be read again; those before stay", {
        error: OctavoError.from(error).message,
      });
    }
  }

  onRequest(exchange: Exchange): undefined | Promise<undefined> {
    const caller = this.identify(exchange.headers);
    return caller instanceof Promise
      ? caller.then((found) => admit(exchange, found))
      : admit(exchange, caller);
  }

  identify(headers: IncomingHttpHeaders): MaybePromise<GatewayCaller> {
    const credential = credentialOf(headers);
    if (credential === undefined) {
      if (!this.#config.anonymous)
        throw new OctavoError("unauthorized", "Send a key: Authorization: Bearer KEY.");
      return anonymousCaller;
    }
    const entry = this.#findKey(credential);
    if (entry !== undefined) {
      const { id, tenant, models, tags } = entry;
      return { ...anonymousCaller, keyId: id, tenant: tenant ?? id, models, tags };
    }
    if (this.#tokens !== undefined && credential.split(".").length === 3) return this.#verify(credential);
    throw new OctavoError("unauthorized", "The key is not known here, or no longer valid.");
  }

  #findKey(credential: string): CallerKey | undefined {
    const now = this.#context.nowMs();
    return this.#ring.find(credential, now) ?? this.#file?.ring.find(credential, now);
  }

  async #verify(token: string): Promise<GatewayCaller> {
    return { ...anonymousCaller, ...(await this.#tokens!.verify(token)) };
  }

  #list(): JsonFields {
    const entries = [...this.#ring.entries, ...(this.#file?.ring.entries ?? [])];
    return {
      keys: entries.map(({ sha256, ...shown }) => ({ ...shown, sha256: `${sha256.slice(0, 8)}...` })),
    };
  }

  /** Answers with the key, this once. */
  #create({ body }: AdminRequest): JsonFields {
    const file = this.#writableFile();
    const { key, sha256 } = newCallerKey();
    const { data, error } = callerKeySchema.omit({ sha256: true }).safeParse(body);
    if (data === undefined) throw new OctavoError("invalid_request", z.prettifyError(error));
    file.reload();
    file.write([...file.ring.entries, { ...data, sha256 }]);
    return { id: data.id, key };
  }

  #remove({ values: [id] }: AdminRequest): JsonFields {
    const file = this.#writableFile();
    file.reload();
    const rest = file.ring.entries.filter((entry) => entry.id !== id);
    if (rest.length === file.ring.entries.length)
      throw new OctavoError("not_found", `There is no key ${id}.`);
    file.write(rest);
    return { removed: id };
  }

  #writableFile(): KeyFile {
    if (this.#file !== undefined) return this.#file;
    throw new OctavoError(
      "invalid_request",
      "Keys are written to callers.keys_file, and none is configured.",
    );
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** From `Authorization: Bearer`, or where other APIs have it: `x-api-key`, `api-key`. */
function credentialOf(headers: IncomingHttpHeaders): string | undefined {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? "")?.[1];
  const other = headers["x-api-key"] ?? headers["api-key"];
  const credential = bearer ?? (Array.isArray(other) ? other[0] : other);
  if (credential === undefined || credential === "") return undefined;
  if (credential.length > mostCharacters)
    throw new OctavoError("unauthorized", "The key is too long to be one.");
  return credential;
}

function admit(exchange: Exchange, caller: GatewayCaller): undefined {
  exchange.caller = caller;
  exchange.ledger.tenant = caller.tenant;
  exchange.ledger.keyId = caller.keyId;
  const { models } = caller;
  const model = exchange.ledger.requestedModel;
  if (models !== undefined && !models.includes(model))
    throw new OctavoError("permission_denied", `The key may not use ${model}.`, { param: "model" });
  return undefined;
}

export const callersStage: StageDefinition<typeof callersSchema> = {
  name: "callers",
  schema: callersSchema,
  create: (config: CallersConfig, context) => new CallersStage(config, context),
};
