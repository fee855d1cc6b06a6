import type { JsonFields } from "@octavo/protocol";
import { z } from "zod";
import { configName } from "../config/fields.js";
import type { Exchange, ModelPrice, PlannedAttempt } from "../exchange/exchange.js";
import type { LedgerUsage } from "../exchange/ledger-entry.js";
import type {
  AdminRoute,
  Stage,
  StageContext,
  StageDefinition,
  StageHooks,
  WholeAnswer,
} from "../exchange/stage.js";
import { compileSchema } from "../guardrails/verdict-rules.js";
import { armOutcome } from "../rollouts/arm-outcome.js";
import { answerScore, type SchemaCheck } from "../rollouts/gates.js";
import { CascadeAccount } from "./cascade-account.js";
import { answerConfidence } from "./confidence.js";

const arm = z.strictObject({ target: configName, model: configName.optional() });

const cascadeSchema = z
  .strictObject({
    /** Requests for this model, as clients name it. */
    model: configName,
    /** Asked first. */
    cheap: arm,
    /** Asked where the cheap answer is not good enough. */
    strong: arm,
    /** All have to hold of a cheap answer. */
    checks: z
      .array(z.enum(["json_valid", "json_schema", "tool_arguments", "finished", "not_empty", "no_refusal"]))
      .default(["not_empty", "finished"]),
    schema: z.record(z.string(), z.unknown()).optional(),
    /** Least geometric mean of its tokens' probabilities. The request asks for logprobs then, and the answer has them. */
    min_confidence: z.number().gt(0).max(1).optional(),
    /** Cost of machines that serve the cheap model alone, used or not; the report sets it against the saving. */
    machine_usd_per_hour: z.number().min(0).optional(),
  })
  .refine(({ checks, schema }) => checks.includes("json_schema") === (schema !== undefined), {
    message: "json_schema and schema come together",
    path: ["schema"],
  })
  .refine(({ cheap, strong }) => cheap.target !== strong.target || cheap.model !== strong.model, {
    message: "is the cheap one: nothing would be escalated",
    path: ["strong"],
  });

const cascadesSchema = z
  .array(cascadeSchema)
  .max(50)
  .superRefine((cascades, context) => {
    const models = cascades.map(({ model }) => model);
    for (const [index, model] of models.entries())
      if (models.indexOf(model) < index)
        context.addIssue({
          code: "custom",
          message: `there are two cascades of ${model}`,
          path: [index, "model"],
        });
  });

type CascadeConfig = z.output<typeof cascadeSchema>;

class ActiveCascade {
  readonly config: CascadeConfig;
  readonly report: CascadeAccount;
  readonly #context: StageContext;
  readonly #isValid: SchemaCheck | undefined;
  readonly #cheap: PlannedAttempt;
  readonly #strong: PlannedAttempt;

  constructor(config: CascadeConfig, context: StageContext) {
    this.config = config;
    this.#context = context;
    this.#isValid =
      config.schema === undefined ? undefined : compileSchema(config.schema, `cascades: ${config.model}`);
    this.#cheap = { target: config.cheap.target, model: config.cheap.model ?? config.model };
    this.#strong = { target: config.strong.target, model: config.strong.model ?? config.model };
    this.report = new CascadeAccount(context.nowMs(), { machineUsdPerHour: config.machine_usd_per_hour });
  }

  onRequest(exchange: Exchange): StageHooks {
    if (this.config.min_confidence !== undefined) askLogprobs(exchange);
    const arms = [this.#cheap, this.#strong];
    let reason: string | undefined;
    return {
      onRoute: (planned) => [
        ...arms,
        ...planned.filter(
          ({ target, model }) => !arms.some((own) => own.target === target && own.model === model),
        ),
      ],
      judgeAnswer: (answer) => {
        if (answer.target !== this.#cheap.target || answer.model !== this.#cheap.model) return undefined;
        reason = this.#whyNot(answer);
        return reason;
      },
      settle: () => {
        this.#settle(exchange, reason);
      },
    };
  }

  #whyNot(answer: WholeAnswer): string | undefined {
    const outcome = armOutcome(answer);
    const failed = this.config.checks.find((check) => answerScore(check, outcome, this.#isValid) < 1);
    if (failed !== undefined) return failed;
    const { min_confidence: least } = this.config;
    if (least === undefined) return undefined;
    const confidence = answerConfidence(answer.json);
    if (confidence === undefined) return "no_logprobs";
    return confidence < least ? "low_confidence" : undefined;
  }

  #settle({ ledger, signal }: Exchange, judged: string | undefined): void {
    const { winner, attempts } = ledger;
    const first = attempts.find((attempt) => this.#isCheap(attempt));
    if (first === undefined || signal.aborted) return;
    const isEscalated = winner !== undefined && !this.#isCheap(winner);
    const reason = judged ?? (isEscalated ? first.outcome : undefined);
    const cost = (isCheap: boolean): number =>
      attempts
        .filter((attempt) => this.#isCheap(attempt) === isCheap)
        .reduce((sum, { costUsd }) => sum + costUsd, 0);
    const [cheapUsd, strongUsd] = [cost(true), cost(false)];
    const usage = ledger.usage ?? first.usage;
    const price = this.#context.priceOf(this.#strong.target, this.#strong.model);
    const strongAloneUsd = isEscalated ? strongUsd : usage && price && priced(usage, price);
    this.report.add({
      cheapUsd,
      strongUsd,
      strongAloneUsd,
      reason: isEscalated ? (reason ?? "unknown") : undefined,
    });
    if (!isEscalated) return;
    ledger.escalation = {
      from: this.#cheap.target,
      to: winner.target,
      reason: reason ?? "unknown",
      cheapCostUsd: cheapUsd,
      costDeltaUsd: strongUsd,
    };
    this.#context.log("info", "escalated", {
      request_id: ledger.requestId,
      model: this.config.model,
      from: this.#cheap.target,
      to: winner.target,
      reason: reason ?? "unknown",
      cheap: {
        usd: cheapUsd,
        status: first.status,
        completion_tokens: first.usage?.completionTokens,
        ms: first.endedMs === undefined ? undefined : first.endedMs - first.startedMs,
      },
      cost_delta_usd: strongUsd,
    });
  }

  #isCheap({ target, model }: PlannedAttempt): boolean {
    return target === this.#cheap.target && model === this.#cheap.model;
  }
}

/** Another model's cache is another cache: all of the prompt is fresh to it. */
function priced({ promptTokens, completionTokens }: LedgerUsage, price: ModelPrice): number {
  return (promptTokens * price.input + completionTokens * price.output) / 1e6;
}

function askLogprobs({ operation, body }: Exchange): void {
  if (operation === "chat" && body.fields["logprobs"] !== true) body.change({ logprobs: true });
  if (operation === "completions" && typeof body.fields["logprobs"] !== "number")
    body.change({ logprobs: 1 });
}

const judgedOperations: ReadonlySet<string> = new Set(["chat", "completions"]);

class CascadeStage implements Stage {
  readonly #byModel: ReadonlyMap<string, ActiveCascade>;
  readonly adminRoutes: readonly AdminRoute[];

  constructor(cascades: readonly CascadeConfig[], context: StageContext) {
    const active = cascades.map((config) => new ActiveCascade(config, context));
    this.#byModel = new Map(active.map((cascade) => [cascade.config.model, cascade]));
    const report = (): JsonFields => ({
      cascades: active.map((cascade) => ({
        model: cascade.config.model,
        cheap: cascade.config.cheap,
        strong: cascade.config.strong,
        ...cascade.report.summary(context.nowMs()),
      })),
    });
    this.adminRoutes = [{ method: "GET", path: "cascades", handle: report }];
  }

  onRequest(exchange: Exchange): StageHooks | undefined {
    if (!judgedOperations.has(exchange.operation)) return undefined;
    return this.#byModel.get(exchange.ledger.requestedModel)?.onRequest(exchange);
  }
}

export const cascadeStage: StageDefinition<typeof cascadesSchema> = {
  name: "cascades",
  schema: cascadesSchema,
  create: (cascades: z.output<typeof cascadesSchema>, context) => new CascadeStage(cascades, context),
};
