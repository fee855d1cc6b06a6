import { randomUUID } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { Exchange } from "../exchange/exchange.js";
import type { MaybePromise } from "../exchange/maybe-promise.js";
import type { Stage, StageContext, StageDefinition, StageHooks } from "../exchange/stage.js";
import type { RateShare, SharedStore } from "../store/shared-store.js";
import { completionTokensAtMost, limitCompletion, unboundedCall } from "./completion-tokens.js";
import { ConcurrencyGate } from "./concurrency-gate.js";
import { scopeFields, subjectsOf } from "./scope.js";

const ruleSchema = z
  .strictObject({
    name: z.string().min(1).max(64),
    ...scopeFields,
    requests_per_minute: z.number().gt(0).optional(),
    /** Requests at once; by default those of ten seconds. */
    requests_burst: z.int().min(1).optional(),
    /** Prompt and completion together. */
    tokens_per_minute: z.number().gt(0).optional(),
    /** Tokens at once; by default those of a minute. */
    tokens_burst: z.int().min(1).optional(),
    /** Calls at the same time. */
    concurrent: z.int().min(1).optional(),
  })
  .refine(
    (rule) =>
      rule.requests_per_minute !== undefined ||
      rule.tokens_per_minute !== undefined ||
      rule.concurrent !== undefined,
    "limits nothing: give requests_per_minute, tokens_per_minute or concurrent",
  );

const limitsSchema = z
  .strictObject({
    rules: z.array(ruleSchema).max(200).default([]),
    /** What a call that names no limit may generate. */
    default_max_tokens: z.int().min(1).optional(),
    /** What any call may generate; a higher `max_tokens` is lowered to it. */
    max_tokens: z.int().min(1).optional(),
    /** Longer prompts are refused. One very long prompt would take everybody's cached blocks. */
    max_prompt_tokens: z.int().min(1).optional(),
  })
  .superRefine(({ rules, default_max_tokens: usual, max_tokens: most }, context) => {
    const names = rules.map(({ name }) => name);
    for (const [index, name] of names.entries())
      if (names.indexOf(name) < index)
        context.addIssue({
          code: "custom",
          message: `there are two rules ${name}`,
          path: ["rules", index, "name"],
        });
    if (usual !== undefined && most !== undefined && usual > most)
      context.addIssue({ code: "custom", message: "is above max_tokens", path: ["default_max_tokens"] });
  });

export type LimitsConfig = z.output<typeof limitsSchema>;
type LimitRule = LimitsConfig["rules"][number];

/** What one call takes, to be returned where it uses less. */
interface Taken extends RateShare {
  readonly rule: LimitRule;
  readonly unit: "requests" | "tokens";
}

class LimitsStage implements Stage {
  readonly #config: LimitsConfig;
  readonly #store: SharedStore;
  readonly #gate: ConcurrencyGate;

  constructor(config: LimitsConfig, store: SharedStore) {
    this.#config = config;
    this.#store = store;
    this.#gate = new ConcurrencyGate(store, randomUUID());
  }

  async onRequest(exchange: Exchange): Promise<StageHooks | undefined> {
    this.#limitSize(exchange);
    const shares: Taken[] = [];
    const entered: string[] = [];
    try {
      for (const rule of this.#config.rules)
        for (const subject of subjectsOf(rule, exchange)) {
          const key = `${rule.name}:${subject}`;
          if (rule.concurrent !== undefined) {
            const entering = this.#gate.enter({ key, limit: rule.concurrent });
            if (!(entering instanceof Promise ? await entering : entering))
              throw refused(rule, `${rule.concurrent} calls at the same time`, 1000);
            entered.push(key);
          }
          addShares(rule, key, exchange, shares);
        }
      if (shares.length > 0) {
        // all rules in one step: of a shared store one round trip
        const taking = this.#store.takeRates(shares);
        const lacking = taking instanceof Promise ? await taking : taking;
        if (lacking !== undefined) throw rateRefused(shares[lacking.index], lacking.waitMs);
      }
    } catch (error) {
      for (const key of entered) this.#gate.leave(key);
      throw error;
    }
    if (shares.length === 0 && entered.length === 0) return undefined;
    return { settle: () => this.#settle(exchange, shares, entered) };
  }

  #limitSize(exchange: Exchange): void {
    const { max_prompt_tokens: mostPrompt, max_tokens: most, default_max_tokens: usual } = this.#config;
    limitCompletion(exchange, usual, most);
    if (mostPrompt === undefined) return;
    const tokens = exchange.promptTokensAtMost();
    if (tokens <= mostPrompt) return;
    throw new OctavoError(
      "context_length_exceeded",
      `The prompt has up to ${tokens} tokens; the gateway takes ${mostPrompt}.`,
      { param: "messages" },
    );
  }

  #settle(exchange: Exchange, shares: readonly Taken[], entered: readonly string[]): MaybePromise<void> {
    for (const key of entered) this.#gate.leave(key);
    const { usage } = exchange.ledger;
    const tokens = usage === undefined ? 0 : usage.promptTokens + usage.completionTokens;
    const unused: RateShare[] = [];
    for (const { unit, bucket, amount } of shares)
      if (unit === "tokens" && amount > tokens) unused.push({ bucket, amount: amount - tokens });
    if (unused.length > 0) return this.#store.giveBackRates(unused);
  }

  close(): Promise<void> {
    return this.#gate.close();
  }
}

/** Of a rule that names none: the requests of ten seconds. */
export function requestsBurst(perMinute: number): number {
  return Math.max(1, Math.ceil(perMinute / 6));
}

/** Of a rule that names none: the tokens of a minute. */
export function tokensBurst(perMinute: number): number {
  return Math.max(1, Math.ceil(perMinute));
}

function addShares(rule: LimitRule, key: string, exchange: Exchange, shares: Taken[]): void {
  if (rule.requests_per_minute !== undefined) {
    const perSecond = rule.requests_per_minute / 60;
    const burst = rule.requests_burst ?? requestsBurst(rule.requests_per_minute);
    shares.push({ rule, unit: "requests", bucket: { key: `requests:${key}`, perSecond, burst }, amount: 1 });
  }
  if (rule.tokens_per_minute === undefined) return;
  const burst = rule.tokens_burst ?? tokensBurst(rule.tokens_per_minute);
  const bucket = { key: `tokens:${key}`, perSecond: rule.tokens_per_minute / 60, burst };
  const amount = Math.max(1, exchange.promptTokensAtMost() + completionTokensAtMost(exchange));
  if (amount === Infinity) throw unboundedCall(rule.name);
  if (amount > burst)
    throw new OctavoError(
      "invalid_request",
      `The call may take ${amount} tokens, and ${rule.name} lets ${burst} through at once; shorten it or lower max_tokens.`,
      { param: "max_tokens" },
    );
  shares.push({ rule, unit: "tokens", bucket, amount });
}

function rateRefused(share: Taken | undefined, waitMs: number): OctavoError {
  if (share === undefined)
    return new OctavoError("internal_error", "a share was refused that was not asked for");
  const perMinute = Math.round(share.bucket.perSecond * 60 * 100) / 100;
  return refused(share.rule, `${perMinute} ${share.unit} per minute`, waitMs);
}

function refused(rule: LimitRule, what: string, waitMs: number): OctavoError {
  return new OctavoError("rate_limit_exceeded", `${rule.name} allows ${what}.`, {
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  });
}

export const limitsStage: StageDefinition<typeof limitsSchema> = {
  name: "rate_limits",
  schema: limitsSchema,
  create: (config: LimitsConfig, { store }: StageContext) => new LimitsStage(config, store),
};
