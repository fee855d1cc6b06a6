import { type JsonFields, OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { Exchange, PlannedAttempt } from "../exchange/exchange.js";
import type {
  AdminRequest,
  AdminRoute,
  Stage,
  StageContext,
  StageDefinition,
  StageHooks,
  WholeAnswer,
} from "../exchange/stage.js";
import { compileSchema } from "../guardrails/verdict-rules.js";
import { noOutcome, armOutcome } from "./arm-outcome.js";
import { cohortPosition } from "./cohort.js";
import { type ArmOutcome, gateDifference, isObserved, type SchemaCheck } from "./gates.js";
import { raceArms } from "./race.js";
import { type RolloutConfig, rolloutSchema } from "./rollout-config.js";
import { gateKeys, harmEvidence, summaries } from "./rollout-machine.js";
import { RolloutService } from "./rollout-service.js";

const rolloutsSchema = z
  .array(rolloutSchema)
  .max(50)
  .superRefine((rollouts, context) => {
    for (const field of ["name", "model"] as const) {
      const values = rollouts.map((rollout) => rollout[field]);
      for (const [index, value] of values.entries())
        if (values.indexOf(value) < index)
          context.addIssue({
            code: "custom",
            message: `there are two rollouts with the ${field} ${value}`,
            path: [index, field],
          });
    }
  });

/** Operations whose answers can be compared. */
const comparable: ReadonlySet<string> = new Set(["chat", "completions"]);

type Arm = "primary" | "canary";

class ActiveRollout {
  readonly config: RolloutConfig;
  readonly service: RolloutService;
  readonly #context: StageContext;
  readonly #checks: readonly (SchemaCheck | undefined)[];
  #openPairs = 0;

  private constructor(config: RolloutConfig, service: RolloutService, context: StageContext) {
    this.config = config;
    this.service = service;
    this.#context = context;
    this.#checks = config.gates.map(({ schema, name, check }) =>
      schema === undefined
        ? undefined
        : compileSchema(schema, `rollouts: ${config.name}: gate ${name ?? check}`),
    );
  }

  static async open(config: RolloutConfig, context: StageContext): Promise<ActiveRollout> {
    return new ActiveRollout(config, await RolloutService.open(config, context), context);
  }

  onRequest(exchange: Exchange): StageHooks | Promise<StageHooks> {
    const { state } = this.service;
    const arms = armsOf(this.config);
    if (state.status === "rolled_back") return this.#answeredBy(exchange, "primary", [arms.primary]);
    if (state.status === "promoted") return this.#answeredBy(exchange, "canary", [arms.canary, arms.primary]);
    const stage = this.config.stages[state.stage]!;
    if (stage.mode === "canary") {
      const arm: Arm =
        cohortPosition(this.config.name, this.#keyOf(exchange)) < stage.share ? "canary" : "primary";
      const isPaired = comparable.has(exchange.operation) && this.#context.random() < this.config.pair_share;
      return this.#answeredBy(
        exchange,
        arm,
        arm === "canary" ? [arms.canary, arms.primary] : [arms.primary],
        isPaired ? "shadow" : undefined,
      );
    }
    const isCopied = comparable.has(exchange.operation) && this.#context.random() < stage.share;
    if (stage.mode === "race" && isCopied) return this.#race(exchange);
    return this.#answeredBy(
      exchange,
      "primary",
      [arms.primary],
      isCopied && stage.mode !== "race" ? stage.mode : undefined,
    );
  }

  #answeredBy(
    exchange: Exchange,
    arm: Arm,
    first: readonly PlannedAttempt[],
    copy?: "shadow" | "mirror",
  ): StageHooks {
    exchange.ledger.cohort = { rollout: this.config.name, arm };
    const onRoute = (planned: readonly PlannedAttempt[]): readonly PlannedAttempt[] => [
      ...first,
      ...planned.filter(({ target, model }) => !isArm(this.config, target, model)),
    ];
    if (copy === undefined || this.#openPairs >= this.config.max_pairs_open) return { onRoute };
    // the body as it is now: a stage after this one may change it for the client's answer alone
    const { fields } = exchange.body;
    const other = armsOf(this.config)[arm === "primary" ? "canary" : "primary"];
    this.#openPairs++;
    const copying = new AbortController();
    const copied = this.#call(other, exchange, fields, copying.signal);
    return {
      onRoute,
      collectsAnswer: true,
      settle: (answer) => {
        // who went away early, and what never came to a target, says nothing of either arm
        if (answer === undefined && !isTargetFailure(exchange)) copying.abort();
        // not awaited: nobody waits for a copy
        void this.#pair(exchange, arm, answer, copied, copy).finally(() => {
          this.#openPairs--;
        });
      },
    };
  }

  async #pair(
    exchange: Exchange,
    arm: Arm,
    answer: WholeAnswer | undefined,
    copied: Promise<ArmOutcome>,
    copy: "shadow" | "mirror",
  ): Promise<void> {
    const other = await copied;
    const { ledger } = exchange;
    if (answer === undefined && !isTargetFailure(exchange)) return;
    const own =
      answer === undefined ? noOutcome(ledger.durationMs ?? 0) : ownOutcome(answer, this.config, arm);
    const [primary, canary] = arm === "primary" ? [own, other] : [other, own];
    this.#observe(primary, canary, copy);
  }

  #observe(primary: ArmOutcome, canary: ArmOutcome, mode: "shadow" | "mirror" | "race"): void {
    const differences: Record<string, number> = {};
    for (const [index, name] of gateKeys(this.config).entries()) {
      const gate = this.config.gates[index]!;
      if (!isObserved(mode, gate.check)) continue;
      const difference = gateDifference(gate, primary, canary, this.#checks[index]);
      if (difference !== undefined) differences[name] = difference;
    }
    this.service.observe({ type: "pair", atMs: this.#context.nowMs(), differences });
  }

  #call(
    arm: PlannedAttempt,
    exchange: Exchange,
    body: JsonFields,
    signal?: AbortSignal,
  ): Promise<ArmOutcome> {
    const startedMs = this.#context.nowMs();
    return this.#context
      .call({ ...arm, operation: exchange.operation, body, signal })
      .then((answer) => armOutcome(answer))
      .catch(() => noOutcome(this.#context.nowMs() - startedMs));
  }

  async #race(exchange: Exchange): Promise<StageHooks> {
    const arms = armsOf(this.config);
    const won = await raceArms(arms, exchange, this.#context);
    if (won === undefined) return this.#answeredBy(exchange, "primary", [arms.primary]);
    exchange.ledger.cohort = { rollout: this.config.name, arm: won.arm };
    const own = armOutcome(won.answer);
    this.#observe(...ordered(won.arm, own, won.loserFailed ? noOutcome(0) : own), "race");
    return { answer: { status: won.answer.status, json: won.answer.json } };
  }

  #keyOf({ caller, headers, body, id }: Exchange): string {
    const { key } = this.config;
    const named: Readonly<Record<string, unknown>> = {
      tenant: caller.tenant,
      key: caller.keyId,
      user: body.fields["user"],
    };
    const value = key.startsWith("header:") ? headers[key.slice("header:".length).toLowerCase()] : named[key];
    return typeof value === "string" && value !== "" ? value : id;
  }

  report(): JsonFields {
    const { state, journal, isLatest } = this.service;
    const stage = this.config.stages[state.stage]!;
    return {
      rollout: this.config.name,
      model: this.config.model,
      status: state.status,
      stage: state.stage,
      stages: this.config.stages,
      share:
        state.status === "rolled_back"
          ? 0
          : state.status === "promoted"
            ? 1
            : stage.mode === "canary"
              ? stage.share
              : 0,
      pairs: state.pairs,
      stage_pairs: state.stagePairs,
      is_latest: isLatest,
      harm: harmEvidence(this.config, state),
      harm_threshold: 1 / this.config.rollback_alpha,
      fit_threshold: 1 / this.config.promote_alpha,
      gates: summaries(this.config, state),
      journal,
    };
  }
}

const ordered = (arm: Arm, own: ArmOutcome, other: ArmOutcome): [ArmOutcome, ArmOutcome] =>
  arm === "primary" ? [own, other] : [other, own];

function armsOf({ model, primary, canary }: RolloutConfig): Readonly<Record<Arm, PlannedAttempt>> {
  return {
    primary: { target: primary.target, model: primary.model ?? model },
    canary: { target: canary.target, model: canary.model ?? model },
  };
}

function isArm(config: RolloutConfig, target: string, model: string): boolean {
  return Object.values(armsOf(config)).some((arm) => arm.target === target && arm.model === model);
}

/** Whether the call ended without an answer because of a target, not because of the client or a stage. */
function isTargetFailure({ ledger, signal }: Exchange): boolean {
  return (
    !signal.aborted &&
    ledger.attempts.length > 0 &&
    ledger.errorCode !== undefined &&
    ledger.errorCode !== "guardrail_blocked"
  );
}

/** Where another target answered in the arm's place, the arm did not. */
function ownOutcome(answer: WholeAnswer, config: RolloutConfig, arm: Arm): ArmOutcome {
  const { target, model } = armsOf(config)[arm];
  const isOwn = answer.target === target && answer.model === model;
  return isOwn ? armOutcome(answer) : noOutcome(answer.durationMs);
}

const commandSchema = z.strictObject({
  by: z.string().min(1).max(128).default("operator"),
  reason: z.string().min(1).max(1000).default("by command"),
});

const commands = ["promote", "hold", "resume", "rollback", "restart"] as const;

class RolloutsStage implements Stage {
  readonly #byModel: ReadonlyMap<string, ActiveRollout>;
  readonly adminRoutes: readonly AdminRoute[];

  constructor(active: readonly ActiveRollout[], context: StageContext) {
    this.#byModel = new Map(active.map((rollout) => [rollout.config.model, rollout]));
    const named = ([name]: readonly string[]): ActiveRollout => {
      const rollout = active.find(({ config }) => config.name === name);
      if (rollout === undefined) throw new OctavoError("not_found", `There is no rollout ${name}.`);
      return rollout;
    };
    const run = async (
      { values, body }: AdminRequest,
      command: (typeof commands)[number],
    ): Promise<JsonFields> => {
      const { data, error } = commandSchema.safeParse(body ?? {});
      if (data === undefined) throw new OctavoError("invalid_request", z.prettifyError(error));
      const rollout = named(values);
      const decision = await rollout.service.command({
        type: "command",
        atMs: context.nowMs(),
        command,
        ...data,
      });
      return { decision: decision ?? null, status: rollout.service.state.status };
    };
    this.adminRoutes = [
      {
        method: "GET",
        path: "rollouts",
        handle: () => ({ rollouts: active.map((rollout) => rollout.report()) }),
      },
      { method: "GET", path: "rollouts/*", handle: ({ values }) => named(values).report() },
      ...commands.map((command): AdminRoute => ({
        method: "POST",
        path: `rollouts/*/${command}`,
        handle: (request) => run(request, command),
      })),
    ];
  }

  onRequest(exchange: Exchange): StageHooks | undefined | Promise<StageHooks> {
    return this.#byModel.get(exchange.ledger.requestedModel)?.onRequest(exchange);
  }

  async close(): Promise<void> {
    for (const { service } of this.#byModel.values()) await service.close();
  }
}

export const rolloutsStage: StageDefinition<typeof rolloutsSchema> = {
  name: "rollouts",
  schema: rolloutsSchema,
  async create(rollouts: z.output<typeof rolloutsSchema>, context) {
    const active: ActiveRollout[] = [];
    for (const config of rollouts) active.push(await ActiveRollout.open(config, context));
    return new RolloutsStage(active, context);
  },
};
