import { randomUUID } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { Exchange } from "../exchange/exchange.js";
import type { Stage, StageContext, StageDefinition, StageHooks } from "../exchange/stage.js";
import type { RateBucket, SharedStore } from "../store/shared-store.js";
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

/** What one call took, to be returned if it is refused by a later rule or used less. */
interface Taken {
  readonly bucket: RateBucket;
  readonly amount: number;
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
    const taken: Taken[] = [];
    const entered: string[] = [];
    try {
      for (const rule of this.#config.rules)
        for (const subject of subjectsOf(rule, exchange))
          await this.#apply(rule, subject, exchange, taken, entered);
    } catch (error) {
      for (const key of entered) this.#gate.leave(key);
      await this.#giveBack(taken, () => 0).catch(() => undefined);
      throw error;
    }
    if (taken.length === 0 && entered.length === 0) return undefined;
    return { settle: () => this.#settle(exchange, taken, entered) };
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

  async #apply(
    rule: LimitRule,
    subject: string,
    exchange: Exchange,
    taken: Taken[],
    entered: string[],
  ): Promise<void> {
    const key = `${rule.name}:${subject}`;
    if (rule.concurrent !== undefined) {
      if (!(await this.#gate.enter({ key, limit: rule.concurrent })))
        throw refused(rule, `${rule.concurrent} calls at the same time`, 1000);
      entered.push(key);
    }
    if (rule.requests_per_minute !== undefined) {
      const perSecond = rule.requests_per_minute / 60;
      const burst = rule.requests_burst ?? Math.max(1, Math.ceil(perSecond * 10));
      const bucket = { key: `requests:${key}`, perSecond, burst };
      await this.#take(rule, { bucket, amount: 1, unit: "requests" }, taken);
    }
    if (rule.tokens_per_minute !== undefined) {
      const burst = rule.tokens_burst ?? Math.max(1, Math.ceil(rule.tokens_per_minute));
      const bucket = { key: `tokens:${key}`, perSecond: rule.tokens_per_minute / 60, burst };
      const amount = Math.max(1, exchange.promptTokensAtMost() + completionTokensAtMost(exchange));
      if (amount === Infinity) throw unboundedCall(rule.name);
      if (amount > burst)
        throw new OctavoError(
          "invalid_request",
          `The call may take ${amount} tokens, and ${rule.name} lets ${burst} through at once; shorten it or lower max_tokens.`,
          { param: "max_tokens" },
        );
      await this.#take(rule, { bucket, amount, unit: "tokens" }, taken);
    }
  }

  async #take(rule: LimitRule, wanted: Taken, taken: Taken[]): Promise<void> {
    const { granted, waitMs } = await this.#store.takeRate(wanted.bucket, wanted.amount, wanted.amount);
    if (granted === 0) {
      const perMinute = Math.round(wanted.bucket.perSecond * 60 * 100) / 100;
      throw refused(rule, `${perMinute} ${wanted.unit} per minute`, waitMs);
    }
    taken.push(wanted);
  }

  async #settle(exchange: Exchange, taken: readonly Taken[], entered: readonly string[]): Promise<void> {
    for (const key of entered) this.#gate.leave(key);
    const { usage } = exchange.ledger;
    const tokens = usage === undefined ? 0 : usage.promptTokens + usage.completionTokens;
    await this.#giveBack(taken, ({ unit, amount }) => (unit === "requests" ? amount : tokens));
  }

  async #giveBack(taken: readonly Taken[], used: (taken: Taken) => number): Promise<void> {
    for (const one of taken) {
      const unused = one.amount - used(one);
      if (unused > 0) await this.#store.giveBackRate(one.bucket, unused);
    }
  }

  close(): Promise<void> {
    return this.#gate.close();
  }
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
