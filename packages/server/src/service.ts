import { createHash } from "node:crypto";
import {
  type Account,
  type Deadlines,
  type LanguageModel,
  type LoadedAdapter,
  type RequestFaults,
} from "@octavo/engine";
import {
  type ChatCompletionRequest,
  type ModelCard,
  type OctavoFields,
  OctavoError,
  parseWith,
  unknownFields,
  warningsHeader,
} from "@octavo/protocol";
import type { z } from "zod";
import type { RequestAccount } from "./account/request-account.js";
import type { ServerConfig } from "./config.js";
import { ResponseStore } from "./generation/response-store.js";
import { TokenTexts } from "./generation/token-text.js";
import type { ApiKeys } from "./http/api-keys.js";
import type { RequestContext } from "./http/request-context.js";
import { MediaFetcher } from "./media/media-fetcher.js";
import type { HttpMetrics } from "./metrics/http-metrics.js";
import { type OutputFormats, resolveFormats } from "@octavo/text/parsers/registry";
import type { Registry } from "@octavo/tracing/prometheus";
import type { TenantResolver } from "./tenants/tenant-resolver.js";
import { servedNames } from "./served-names.js";
import { serverVersion } from "./version.js";
import { invalidField, unsupportedField } from "@octavo/protocol/refusal";

/** The model, or one of its adapters. */
export interface ServedModel {
  /** As answers carry it. */
  readonly name: string;
  readonly adapter: LoadedAdapter | undefined;
}

/** All models of a server, as one of them sees them. */
export interface ServerModels {
  readonly all: readonly Service[];
  /** Whether it is in memory, where models sleep by turns. */
  stateOf(service: Service): ModelCard["state"];
}

/** Body fields that decide the tenant and the deadlines. */
export interface TermsFields {
  readonly user?: string | null | undefined;
  readonly octavo?:
    | {
        readonly queue_timeout_ms?: number | null | undefined;
        readonly ttft_timeout_ms?: number | null | undefined;
        readonly timeout_ms?: number | null | undefined;
      }
    | null
    | undefined;
}

/** The owner of an engine request, and its deadlines. */
export interface RequestTerms {
  readonly owner: RequestAccount;
  readonly account: Account;
  readonly deadlines: Deadlines;
}

/** Most names listed in an error message. */
const mostListed = 20;

/** What every handler works with: one model, its names, and the server's settings. */
export class Service {
  readonly model: LanguageModel;
  readonly config: ServerConfig;
  readonly registry: Registry;
  readonly httpMetrics: HttpMetrics;
  /** Names that requests may use; the first is the one that answers carry. */
  readonly modelNames: readonly [string, ...string[]];
  /** Changes whenever answers could: artifact, its configuration, what computes it, Octavo's version. */
  readonly fingerprint: string;
  readonly tokenTexts: TokenTexts;
  /** The output formats of tool calls and reasoning. */
  readonly formats: OutputFormats;
  /** Stored responses of `/v1/responses`. */
  readonly responses: ResponseStore;
  readonly media: MediaFetcher;
  readonly startedAtSeconds = nowSeconds();
  readonly keys: ApiKeys;
  readonly #tenants: TenantResolver;
  /** All models of the server; set by them. */
  models: ServerModels | undefined;
  isDraining = false;

  constructor(
    model: LanguageModel,
    config: ServerConfig,
    registry: Registry,
    httpMetrics: HttpMetrics,
    keys: ApiKeys,
    tenants: TenantResolver,
    responses = new ResponseStore(),
  ) {
    this.model = model;
    this.config = config;
    this.registry = registry;
    this.httpMetrics = httpMetrics;
    this.keys = keys;
    this.#tenants = tenants;
    this.responses = responses;
    this.media = new MediaFetcher(config);
    this.modelNames = servedNames(model, config);
    this.fingerprint = fingerprintOf(model);
    this.tokenTexts = new TokenTexts(model.tokenizer);
    const templates = [model.chatTemplate, model.namedChatTemplates.get("tool_use")];
    this.formats = resolveFormats(
      config,
      templates.flatMap((template) => (template === undefined ? [] : [template.source])),
    );
  }

  /**
   * Reads, checks and returns a request body. Fields that the schema does not know are named in a header, or refused
   * where the server is strict.
   */
  async readRequest<Schema extends z.ZodObject>(
    context: RequestContext,
    schema: Schema,
  ): Promise<z.output<Schema>> {
    const body = await context.readBody();
    const request = parseWith(schema, body);
    context.account.describe(request);
    const unknown = unknownFields(body, request);
    if (unknown.length > 0) this.#reportUnknown(context, unknown);
    return request;
  }

  #reportUnknown({ response, log }: RequestContext, names: readonly string[]): void {
    const shown = names.map((name) => name.slice(0, 64).replaceAll(/[^\w.[\]-]/g, "?"));
    const [first = ""] = shown;
    if (this.config.strictRequests)
      throw invalidField(first, "this server knows no such field (--strict-requests)");
    response.setHeader(warningsHeader, `unknown fields without effect: ${shown.join(", ")}`);
    log.debug({ fields: shown }, "unknown request fields without effect");
  }

  /** The loaded adapters. */
  get adapters(): readonly LoadedAdapter[] {
    return this.model.adapters?.list() ?? [];
  }

  /** Whether a name means this model, or one of its adapters. */
  serves(name: string | null | undefined): boolean {
    if (name === undefined || name === null) return false;
    return this.modelNames.includes(name) || this.model.adapters?.find(name) !== undefined;
  }

  /** Throws `model_not_found` for a name that is not served. No name means the model itself. */
  servedModel(name: string | null | undefined): ServedModel {
    if (name === undefined || name === null || this.modelNames.includes(name))
      return { name: this.modelNames[0], adapter: undefined };
    const adapter = this.model.adapters?.find(name);
    if (adapter !== undefined) return { name, adapter };
    const all: readonly Service[] = this.models?.all ?? [this];
    const known = all.flatMap((each) => [...each.modelNames, ...each.adapters.map((loaded) => loaded.name)]);
    const listed = known.slice(0, mostListed).map((served) => JSON.stringify(served));
    const rest = known.length > mostListed ? `, and ${known.length - mostListed} more` : "";
    const message = `the model ${JSON.stringify(name.slice(0, 200))} does not exist here; this server serves ${listed.join(", ")}${rest}`;
    throw new OctavoError("model_not_found", message, { param: "model" });
  }

  /** Throws `invalid_request` for a model that gives vectors or scores alone. */
  checkGivesText(): void {
    const { config } = this.model;
    if (config.hasHead !== false) return;
    const endpoints = config.classifier === undefined ? "/v1/embeddings" : "/classify, /score or /rerank";
    throw invalidField("model", `${JSON.stringify(this.modelNames[0])} gives no text: use ${endpoints}`);
  }

  /** Throws `invalid_request` for ids outside the vocabulary. */
  checkTokens(tokens: Int32Array, param: string): void {
    const { vocabSize } = this.model.tokenizer;
    const bad = tokens.findIndex((token) => token < 0 || token >= vocabSize);
    if (bad < 0) return;
    throw invalidField(
      `${param}[${bad}]`,
      `token id ${tokens[bad]} is outside the vocabulary of ${vocabSize} tokens`,
    );
  }

  /** The tenant that engine requests are charged to, and their deadlines. */
  termsOf(owner: RequestAccount, request: TermsFields): RequestTerms {
    owner.user = request.user ?? undefined;
    const account = owner.charged;
    const { queueTimeoutMs, firstTokenTimeoutMs } = this.config;
    const lane = this.#tenants.deadlinesOf(account);
    const wanted = request.octavo;
    return {
      owner,
      account,
      deadlines: {
        queueMs: soonest(lane.queueTimeoutMs ?? queueTimeoutMs, wanted?.queue_timeout_ms),
        firstTokenMs: soonest(lane.firstTokenTimeoutMs ?? firstTokenTimeoutMs, wanted?.ttft_timeout_ms),
        totalMs: soonest(lane.timeoutMs ?? 0, wanted?.timeout_ms),
      },
    };
  }

  /** The faults that a request injects; throws `unsupported_parameter` if the server does not allow them. */
  faultsOf(octavo: OctavoFields | null | undefined): { readonly faults?: RequestFaults } {
    const faults = octavo?.faults;
    if (faults === undefined || faults === null) return {};
    if (!this.config.enableFaultInjection) {
      throw unsupportedField(
        "octavo.faults",
        "this server takes no faults; its operator can start it with --enable-fault-injection",
      );
    }
    const listed = (at: number | readonly number[] | null | undefined): readonly number[] =>
      typeof at === "number" ? [at] : (at ?? []);
    return {
      faults: {
        preemptAtTokens: listed(faults.preempt_at_token),
        evictAtTokens: listed(faults.evict_at_token),
      },
    };
  }

  checkPriority(priority: number | null | undefined): void {
    if (this.config.schedulingPolicy === "priority" || !priority) return;
    const policy =
      this.config.schedulingPolicy === "fair" ? "fairly between tenants" : "first-come first-served";
    throw invalidField(
      "priority",
      `this server schedules ${policy}; start it with --scheduling-policy priority`,
    );
  }

  /** Whether a stream ends with a usage chunk: asked for, or forced by the operator. */
  wantsUsage(request: Pick<ChatCompletionRequest, "stream_options">): boolean {
    return request.stream_options?.include_usage === true || this.config.enableForceIncludeUsage;
  }

  /** Whether each chunk of such a stream counts what came so far: asked for, or forced, as in vLLM. */
  countsUsage(request: Pick<ChatCompletionRequest, "stream_options">): boolean {
    return request.stream_options?.continuous_usage_stats === true || this.config.enableForceIncludeUsage;
  }
}

/** The shorter of the operator's limit, 0 for none, and the request's. */
function soonest(configuredMs: number, wantedMs: number | null | undefined): number | undefined {
  const bounds = [configuredMs, wantedMs ?? 0].filter((ms) => ms > 0);
  return bounds.length === 0 ? undefined : Math.min(...bounds);
}

export function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

function fingerprintOf(model: LanguageModel): string {
  const identity = JSON.stringify([
    serverVersion,
    model.name,
    model.config,
    model.numerics,
    model.engine.maxModelLen,
  ]);
  return `fp_${createHash("sha256").update(identity).digest("hex").slice(0, 16)}`;
}
