import { OctavoError } from "@octavo/protocol";
import { formatTraceParent } from "@octavo/tracing";
import type { PlannedAttempt } from "../exchange/exchange.js";
import type { AttemptReason } from "../exchange/ledger-entry.js";
import type { LiveExchange } from "../exchange/live-exchange.js";
import { tenantHeaders } from "../exchange/tenant-marks.js";
import type { StageHooks, WholeAnswer } from "../exchange/stage.js";
import { TargetAttempt } from "../relay/attempt.js";
import type { AttemptBudget } from "../relay/attempt-budget.js";
import { Continuation } from "../relay/continuation.js";
import { isResumable, makeCall } from "../relay/make-call.js";
import { AnswerSource, noTarget, type ObtainOptions } from "../relay/obtain-answer.js";
import { Relay } from "../relay/relay-answer.js";
import type { AnswerWriting } from "../relay/send-whole.js";
import type { PromptBlocks } from "../routing/prefix-index.js";
import type { RouteChoice } from "../routing/router.js";
import { drawSeed, type GatewayRuntime, runStages } from "./runtime.js";

export interface CallEnvironment {
  readonly runtime: GatewayRuntime;
  readonly writing: AnswerWriting;
  readonly nowMs: () => number;
  readonly random: () => number;
}

/**
 * One exchange from its first stage to its answer. `hooks` fills as stages run, so that the code that settles the exchange finds
 * those of an exchange that failed half-way too. Resolves with the answer where a stage collects it.
 */
export async function runCall(
  exchange: LiveExchange,
  environment: CallEnvironment,
  hooks: StageHooks[],
): Promise<WholeAnswer | undefined> {
  const { runtime } = environment;
  checkAborted(exchange);
  if (runtime.stages.length > 0) await runStages(runtime.stages, exchange, hooks);
  checkAborted(exchange);
  const local = hooks.at(-1)?.answer;
  if (local !== undefined) {
    await relayOf(exchange, environment, hooks, undefined, undefined, undefined).local(local);
    return undefined;
  }
  const { choice } = exchange;
  const counted = runtime.prefixes.blocksOf(choice.route.name, exchange);
  const blocks = counted instanceof Promise ? await counted : counted;
  const { ledger } = exchange;
  ledger.route = choice.route.name;
  ledger.strategy = choice.route.config.strategy;
  exchange.dueMs = exchange.arrivedMs + choice.route.config.timeouts.total;
  const asked: AskedTargets = { exchange, environment, hooks, choice, blocks };
  const isPooled = choice.route.pool !== undefined;
  const planned = isPooled ? await planInTurn(asked) : plan(asked);
  if (planned.length === 0) throw noTarget();
  const continuation =
    exchange.facts.isStream && planned.some(({ target }) => mayResume(asked, target))
      ? new Continuation(drawSeed())
      : undefined;
  const source = new AnswerSource(
    new CallTargets(asked, planned, continuation, isPooled ? () => planInTurn(asked) : undefined),
  );
  exchange.cancelled = source;
  exchange.dueMs = exchange.arrivedMs + choice.route.config.timeouts.total;
  try {
    const obtained = await source.obtain();
    const relaying = relayOf(exchange, environment, hooks, source, continuation, blocks).run(obtained);
    return relaying instanceof Promise ? await relaying : relaying;
  } catch (thrown) {
    throw exchange.abortReason ?? thrown;
  } finally {
    source.cancel();
  }
}

/** A call whose route is known. */
interface AskedTargets {
  readonly exchange: LiveExchange;
  readonly environment: CallEnvironment;
  readonly hooks: readonly StageHooks[];
  readonly choice: RouteChoice;
  readonly blocks: PromptBlocks | undefined;
}

function plan({ exchange, environment, hooks, choice, blocks }: AskedTargets): readonly PlannedAttempt[] {
  const { runtime, nowMs, random } = environment;
  let planned = runtime.router.plan(choice, exchange.facts, nowMs(), random, blocks);
  for (const { onRoute } of hooks) if (onRoute !== undefined) planned = onRoute(planned);
  return planned;
}

async function planInTurn(asked: AskedTargets): Promise<readonly PlannedAttempt[]> {
  const { exchange, environment, choice, blocks } = asked;
  const { pool } = choice.route;
  const { router } = environment.runtime;
  if (choice.pinned !== undefined && pool?.member(choice.pinned) === undefined) throw noSuchReplica();
  await pool?.turn(
    {
      arrivedMs: exchange.arrivedMs,
      tokens: (blocks?.numTokens ?? exchange.facts.promptTokens) + exchange.facts.maxTokens,
      isFirst: exchange.ledger.attempts.length === 0,
    },
    () => router.hasRoom(choice, exchange.facts, environment.nowMs()),
    () => exchange.signal,
  );
  return plan(asked);
}

function mayResume({ exchange, environment }: AskedTargets, target: string): boolean {
  const live = environment.runtime.router.target(target);
  return live !== undefined && isResumable(exchange, live);
}

/** Opens attempts for one call. A class, since a call that made closures instead would take longer. */
class CallTargets implements ObtainOptions {
  readonly planned: readonly PlannedAttempt[];
  readonly replan: (() => Promise<readonly PlannedAttempt[]>) | undefined;
  readonly maxAttempts: number;
  readonly latencyThresholdMs: number | undefined;
  readonly hedgeAfterMs: number | undefined;
  readonly retryOnRefusal: boolean;
  readonly retries: AttemptBudget;
  readonly hedges: AttemptBudget;
  readonly #asked: AskedTargets;
  readonly #continuation: Continuation | undefined;
  /** A target that has left its pool is not found by its name any more. */
  readonly #attempts: TargetAttempt[] = [];

  constructor(
    asked: AskedTargets,
    planned: readonly PlannedAttempt[],
    continuation: Continuation | undefined,
    replan: (() => Promise<readonly PlannedAttempt[]>) | undefined,
  ) {
    const { route } = asked.choice;
    const { runtime } = asked.environment;
    const { retries, hedge } = route.config;
    const budgets = runtime.budgets(route);
    budgets.retries.earn();
    budgets.hedges.earn();
    this.planned = planned;
    this.replan = replan;
    this.maxAttempts = retries.attempts;
    this.latencyThresholdMs = retries.latency_threshold;
    this.hedgeAfterMs = hedge === undefined ? undefined : hedgeDelay(runtime, hedge.after, planned);
    this.retryOnRefusal = retries.on_refusal;
    this.retries = budgets.retries;
    this.hedges = budgets.hedges;
    this.#asked = asked;
    this.#continuation = continuation;
  }

  async allowsExtra(): Promise<boolean> {
    for (const { onExtraAttempt } of this.#asked.hooks)
      if ((await onExtraAttempt?.()) === false) return false;
    return true;
  }

  canContinue(next: PlannedAttempt): boolean {
    const { exchange, environment } = this.#asked;
    const { winner } = exchange.ledger;
    const begun = this.#attempts.find(({ record }) => record === winner)?.target;
    const live = environment.runtime.router.target(next.target);
    return (
      begun?.row.resumes === true &&
      live?.row.resumes === true &&
      live.modelName(next.model) === winner?.model
    );
  }

  open(next: PlannedAttempt, reason: AttemptReason, firstByteMs: number | undefined): TargetAttempt {
    const { exchange, environment, choice, blocks } = this.#asked;
    const { runtime, nowMs } = environment;
    const target = runtime.router.target(next.target);
    const name = target?.modelName(next.model);
    if (target === undefined || name === undefined)
      throw new OctavoError("no_target", `No target ${next.target} has a model ${next.model}.`);
    if (!target.admits(nowMs(), choice.lane?.share)) throw noTarget();
    const { timeouts } = choice.route.config;
    const cachedTokens = blocks?.index.predict(target.name, blocks.hashes, blocks.numTokens);
    const { maxTokens, promptTokens: guessed } = exchange.facts;
    const attempt = new TargetAttempt({
      target,
      model: next.model,
      call: makeCall(exchange, {
        target,
        model: name,
        priority: choice.lane?.priority ?? 0,
        continuation: this.#continuation,
      }),
      reason,
      timeouts: {
        firstByteMs: Math.min(timeouts.first_byte, firstByteMs ?? Infinity),
        idleMs: timeouts.idle,
      },
      maxAnswerBytes: runtime.config.limits.max_answer,
      maxEventBytes: runtime.config.limits.max_event,
      clock: exchange,
      nowMs,
      predictedCachedTokens: cachedTokens,
      expectedTokens: (blocks?.numTokens ?? guessed) - (cachedTokens ?? 0) + maxTokens,
      addedHeaders: [
        "traceparent",
        formatTraceParent(exchange.trace),
        "x-request-id",
        exchange.id,
        ...tenantHeaders(target, exchange.caller.tenant),
      ],
    });
    exchange.ledger.attempts.push(attempt.record);
    this.#attempts.push(attempt);
    return attempt;
  }

  checkAborted(): void {
    checkAborted(this.#asked.exchange);
  }
}

function relayOf(
  exchange: LiveExchange,
  { writing }: CallEnvironment,
  hooks: readonly StageHooks[],
  source: AnswerSource | undefined,
  continuation: Continuation | undefined,
  blocks: PromptBlocks | undefined,
): Relay {
  const { fields } = exchange.body;
  const options = fields["stream_options"] as { readonly include_usage?: unknown } | null | undefined;
  return new Relay(exchange, {
    hooks,
    source,
    continuation,
    hidesUsage: options?.include_usage !== true,
    hidesTokenIds: continuation !== undefined && fields["return_token_ids"] !== true,
    writing,
    onWinner: (attempt) => {
      exchange.ledger.winner = attempt.record;
      blocks?.index.add(attempt.target.name, blocks.hashes);
    },
  });
}

/** As configured, or the measured percentile of the target that is asked first; none before it has answered often enough. */
function hedgeDelay(
  runtime: GatewayRuntime,
  after: number | "p50" | "p90" | "p95" | "p99",
  [first]: readonly PlannedAttempt[],
): number | undefined {
  if (typeof after === "number") return after;
  const window = runtime.router.target(first?.target ?? "")?.firstByte;
  return window === undefined || window.count < 20
    ? undefined
    : window.quantile(Number(after.slice(1)) / 100);
}

function noSuchReplica(): OctavoError {
  return new OctavoError("no_target", "The replica that the request is pinned to is not there.");
}

function checkAborted({ abortReason }: LiveExchange): void {
  if (abortReason !== undefined) throw abortReason;
}
