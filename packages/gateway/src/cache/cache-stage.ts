import { createHash } from "node:crypto";
import { asObjects, asString, type JsonFields, OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { byteSize, configName, timeSpan } from "../config/fields.js";
import type { Exchange } from "../exchange/exchange.js";
import type { LedgerEntry } from "../exchange/ledger-entry.js";
import type { Stage, StageContext, StageDefinition, StageHooks, WholeAnswer } from "../exchange/stage.js";
import { isPurged } from "../rollouts/purge.js";
import { canonicalJson } from "./canonical-json.js";
import { SemanticIndex } from "./semantic-index.js";

const cacheSchema = z.strictObject({
  /** How long an answer is served. */
  ttl: timeSpan.prefault("1h"),
  /** Models as clients name them; all unless given. */
  models: z.array(configName).min(1).optional(),
  /** Scope in which answers are shared: a tenant's callers, one key's, or everybody. */
  per: z.enum(["tenant", "key", "all"]).default("tenant"),
  /** Which chat requests and completions: those with temperature 0, or all. A sample served twice is not a sample. */
  requests: z.enum(["deterministic", "all"]).default("deterministic"),
  max_answer: byteSize.prefault("1MiB"),
  semantic: z
    .strictObject({
      /** Whose embeddings tell what a text means. */
      target: configName,
      model: configName,
      /** Least cosine of texts that get the same answer. */
      threshold: z.number().gt(0).max(1).default(0.95),
      /** Texts that this process remembers. */
      max_texts: z.int().min(1).max(1_000_000).default(10_000),
      timeout: timeSpan.prefault("2s"),
    })
    .optional(),
});

type CacheConfig = z.output<typeof cacheSchema>;

/** An answer as it is kept. */
interface CachedAnswer {
  readonly json: JsonFields;
  /** Arrival of the call that it was made for, in ms since 1970. */
  readonly arrivedMs: number;
  readonly cohort: LedgerEntry["cohort"] | null;
}

/** Fields that do not change what is answered. */
const ignoredFields: ReadonlySet<string> = new Set([
  "stream",
  "stream_options",
  "user",
  "metadata",
  "safety_identifier",
  "prompt_cache_key",
  "priority",
]);

const generating: ReadonlySet<string> = new Set(["chat", "completions"]);
const cacheable: ReadonlySet<string> = new Set(["chat", "completions", "embeddings", "rerank", "score"]);

class CacheStage implements Stage {
  readonly #config: CacheConfig;
  readonly #context: StageContext;
  readonly #index: SemanticIndex | undefined;

  constructor(config: CacheConfig, context: StageContext) {
    this.#config = config;
    this.#context = context;
    this.#index = config.semantic === undefined ? undefined : new SemanticIndex(config.semantic.max_texts);
  }

  async onRequest(exchange: Exchange): Promise<StageHooks | undefined> {
    const { operation, ledger, headers, body } = exchange;
    const { models, requests } = this.#config;
    if (!cacheable.has(operation) || (models !== undefined && !models.includes(ledger.requestedModel)))
      return undefined;
    const control = (headers["cache-control"] ?? "").toLowerCase();
    const isSample = generating.has(operation) && body.fields["temperature"] !== 0;
    if (control.includes("no-store") || (requests === "deterministic" && isSample)) {
      ledger.cache = "bypass";
      return undefined;
    }
    const owner = this.#ownerOf(exchange);
    const key = `answer:${digestOf([owner, operation, withoutFields(body.fields)])}`;
    if (control.includes("no-cache")) {
      ledger.cache = "bypass";
      return this.#writeAfter(exchange, key, undefined);
    }
    const cached = await this.#read(key);
    if (cached !== undefined) return this.#hit(ledger, "hit", cached);
    ledger.cache = "miss";
    const meaning = await this.#meaningOf(exchange, owner);
    if (meaning !== undefined) {
      const near = this.#index!.find(meaning.context, meaning.embedding, this.#config.semantic!.threshold);
      const similar = near === undefined ? undefined : await this.#read(near);
      if (similar !== undefined) return this.#hit(ledger, "semantic-hit", similar);
      if (near !== undefined) this.#index!.remove(meaning.context, near);
    }
    return this.#writeAfter(exchange, key, meaning);
  }

  #hit(ledger: LedgerEntry, kind: "hit" | "semantic-hit", { json, cohort }: CachedAnswer): StageHooks {
    ledger.cache = kind;
    ledger.cohort = cohort ?? undefined;
    return { answer: { status: 200, json } };
  }

  /** Undefined without a tenant where answers are a tenant's: nobody's answers are everybody's there. */
  #ownerOf({ caller }: Exchange): string {
    const { per } = this.#config;
    if (per === "all") return "all";
    return per === "key" ? `key:${caller.keyId ?? caller.tenant ?? ""}` : `tenant:${caller.tenant ?? ""}`;
  }

  /** What may be served: neither expired nor by a canary that was rolled back. A store that is away has nothing. */
  async #read(key: string): Promise<CachedAnswer | undefined> {
    const { store } = this.#context;
    try {
      const value = await store.readBlob(key);
      if (value === undefined) return undefined;
      const cached = JSON.parse(value) as CachedAnswer;
      const { cohort, arrivedMs } = cached;
      if (cohort?.arm === "canary" && (await isPurged(store, cohort.rollout, arrivedMs))) {
        await store.deleteBlobs([key]);
        return undefined;
      }
      return cached;
    } catch (error) {
      this.#noteFailure("read", error);
      return undefined;
    }
  }

  #writeAfter(exchange: Exchange, key: string, meaning: Meaning | undefined): StageHooks {
    return {
      collectsAnswer: true,
      settle: async (answer) => {
        if (answer === undefined || !isComplete(answer, exchange)) return;
        const { cohort, arrivedEpochMs: arrivedMs } = exchange.ledger;
        const value = JSON.stringify({
          json: answer.json,
          arrivedMs,
          cohort: cohort ?? null,
        } satisfies CachedAnswer);
        if (value.length > this.#config.max_answer) return;
        try {
          await this.#context.store.writeBlob(key, value, this.#config.ttl);
          if (meaning !== undefined) this.#index!.add(meaning.context, meaning.embedding, key);
        } catch (error) {
          this.#noteFailure("write", error);
        }
      },
    };
  }

  /** Embeds the last user message; also gives the key of requests that are otherwise equal. */
  async #meaningOf({ operation, body, signal }: Exchange, owner: string): Promise<Meaning | undefined> {
    const { semantic } = this.#config;
    if (semantic === undefined || operation !== "chat") return undefined;
    const messages = asObjects(body.fields["messages"]);
    const last = messages.at(-1);
    const text = asString(last?.["content"]);
    if (last?.["role"] !== "user" || text === undefined || text.trim() === "") return undefined;
    const rest = { ...withoutFields(body.fields), messages: messages.slice(0, -1) };
    try {
      const { json } = await this.#context.call({
        target: semantic.target,
        model: semantic.model,
        operation: "embeddings",
        body: { input: text },
        signal: AbortSignal.any([signal, AbortSignal.timeout(semantic.timeout)]),
      });
      const embedding = asObjects(json["data"])[0]?.["embedding"];
      if (!Array.isArray(embedding) || !embedding.every((value) => typeof value === "number"))
        throw new OctavoError("target_unreachable", "the embedding is not a list of numbers");
      return { context: digestOf([owner, rest]), embedding };
    } catch (error) {
      signal.throwIfAborted();
      this.#noteFailure("embed", error);
      return undefined;
    }
  }

  #noteFailure(what: string, error: unknown): void {
    this.#context.log("warn", "cache_failed", { what, error: OctavoError.from(error).message });
  }
}

interface Meaning {
  readonly context: string;
  readonly embedding: readonly number[];
}

function withoutFields(fields: JsonFields): JsonFields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !ignoredFields.has(name)));
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("base64url");
}

/** An answer that ended by itself; another would be cut short for everybody. */
function isComplete({ status, json }: WholeAnswer, { ledger, signal }: Exchange): boolean {
  if (status !== 200 || ledger.errorCode !== undefined || signal.aborted) return false;
  return asObjects(json["choices"]).every(
    ({ finish_reason: reason }) => reason === "stop" || reason === "tool_calls",
  );
}

export const cacheStage: StageDefinition<typeof cacheSchema> = {
  name: "cache",
  schema: cacheSchema,
  create: (config: CacheConfig, context) => new CacheStage(config, context),
};
