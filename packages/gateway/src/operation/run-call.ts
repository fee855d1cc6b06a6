import { OctavoError } from "@octavo/protocol";
import { formatTraceParent } from "@octavo/tracing";
import type { PlannedAttempt } from "../exchange/exchange.js";
import type { AttemptRecord } from "../exchange/ledger-entry.js";
import type { LiveExchange } from "../exchange/live-exchange.js";
import type { StageHooks, WholeAnswer } from "../exchange/stage.js";
import { TargetAttempt } from "../relay/attempt.js";
import { AttemptBudget } from "../relay/attempt-budget.js";
import { Continuation } from "../relay/continuation.js";
import { isResumable, makeCall } from "../relay/make-call.js";
import { AnswerSource, noTarget } from "../relay/obtain-answer.js";
import { Relay } from "../relay/relay-answer.js";
import type { AnswerWriting } from "../relay/send-whole.js";
import type { PromptBlocks } from "../routing/prefix-index.js";
import type { LiveTarget } from "../targets/live-target.js";
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
    const source = sourceOf(exchange, environment, hooks, [], undefined, undefined);
    await relayOf(exchange, environment, hooks, source, undefined, undefined, false).local(local);
    return undefined;
  }
  const { choice } = exchange;
  const blocks = await runtime.prefixes.blocksOf(choice.route.name, exchange);
  const { ledger } = exchange;
  ledger.route = choice.route.name;
  ledger.strategy = choice.route.config.strategy;
  exchange.dueMs = exchange.arrivedMs + choice.route.config.timeouts.total;
  const plan = (): readonly PlannedAttempt[] => {
    let planned = runtime.router.plan(
      choice,
      exchange.facts,
      environment.nowMs(),
      environment.random,
      blocks,
    );
    for (const { onRoute } of hooks) if (onRoute !== undefined) planned = onRoute(planned);
    return planned;
  };
  const { pool } = choice.route;
  const planInTurn = async (): Promise<readonly PlannedAttempt[]> => {
    if (choice.pinned !== undefined && pool?.member(choice.pinned) === undefined) throw noSuchReplica();
    await pool?.turn(
      {
        arrivedMs: exchange.arrivedMs,
        tokens: (blocks?.numTokens ?? exchange.facts.promptTokens) + exchange.facts.maxTokens,
        isFirst: ledger.attempts.length === 0,
      },
      () => runtime.router.hasRoom(choice, exchange.facts, environment.nowMs()),
      () => exchange.signal,
    );
    return plan();
  };
  const planned = pool === undefined ? plan() : await planInTurn();
  if (planned.length === 0) throw noTarget();
  const continuation = planned.some(({ target }) => {
    const live = runtime.router.target(target);
    return live !== undefined && isResumable(exchange, live);
  })
    ? new Continuation(drawSeed())
    : undefined;
  const replan = pool === undefined ? undefined : planInTurn;
  const source = sourceOf(exchange, environment, hooks, planned, continuation, blocks, replan);
  exchange.cancelled = source;
  exchange.dueMs = exchange.arrivedMs + choice.route.config.timeouts.total;
  try {
    const obtained = await source.obtain();
    const relay = relayOf(exchange, environment, hooks, source, continuation, blocks, true);
    return await relay.run(obtained);
  } catch (thrown) {
    throw exchange.abortReason ?? thrown;
  } finally {
    source.cancel();
  }
}

function sourceOf(
  exchange: LiveExchange,
  environment: CallEnvironment,
  hooks: readonly StageHooks[],
  planned: readonly PlannedAttempt[],
  continuation: Continuation | undefined,
  blocks: PromptBlocks | undefined,
  replan?: () => Promise<readonly PlannedAttempt[]>,
): AnswerSource {
  const { runtime } = environment;
  const choice = planned.length === 0 ? undefined : exchange.choice;
  const route = choice?.route;
  const budgets = route === undefined ? undefined : runtime.budgets(route);
  const { retries, hedge } = route?.config ?? {};
  /** A target that has left its pool is not found by its name any more. */
  const attempted = new Map<AttemptRecord, LiveTarget>();
  budgets?.retries.earn();
  budgets?.hedges.earn();
  return new AnswerSource({
    planned,
    replan,
    maxAttempts: retries?.attempts ?? 0,
    latencyThresholdMs: retries?.latency_threshold,
    hedgeAfterMs:
      hedge === undefined || choice === undefined ? undefined : hedgeDelay(runtime, hedge.after, planned),
    retryOnRefusal: retries?.on_refusal ?? false,
    retries: budgets?.retries ?? noBudget,
    hedges: budgets?.hedges ?? noBudget,
    allowsExtra: () => allowsExtra(hooks),
    canContinue: (next) => {
      const { winner } = exchange.ledger;
      const begun = winner === undefined ? undefined : attempted.get(winner);
      const live = runtime.router.target(next.target);
      return (
        begun?.row.resumes === true &&
        live?.row.resumes === true &&
        live.modelName(next.model) === winner?.model
      );
    },
    open: (next, reason, firstByteMs) => {
      const target = runtime.router.target(next.target);
      const name = target?.modelName(next.model);
      if (target === undefined || name === undefined || choice === undefined)
        throw new OctavoError("no_target", `No target ${next.target} has a model ${next.model}.`);
      if (!target.admits(environment.nowMs(), choice.lane?.share)) throw noTarget();
      const { timeouts } = choice.route.config;
      const cachedTokens = blocks?.index.predict(target.name, blocks.hashes, blocks.numTokens);
      const { maxTokens, promptTokens: guessed } = exchange.facts;
      const promptTokens = blocks?.numTokens ?? guessed;
      const attempt = new TargetAttempt({
        target,
        model: next.model,
        call: makeCall(exchange, { target, model: name, priority: choice.lane?.priority ?? 0, continuation }),
        reason,
        timeouts: {
          firstByteMs: Math.min(timeouts.first_byte, firstByteMs ?? Infinity),
          idleMs: timeouts.idle,
        },
        maxAnswerBytes: runtime.config.limits.max_answer,
        maxEventBytes: runtime.config.limits.max_event,
        elapsedMs: () => exchange.elapsedMs(),
        nowMs: environment.nowMs,
        predictedCachedTokens: cachedTokens,
        expectedTokens: promptTokens - (cachedTokens ?? 0) + maxTokens,
        traceHeaders: ["traceparent", formatTraceParent(exchange.trace), "x-request-id", exchange.id],
      });
      exchange.ledger.attempts.push(attempt.record);
      attempted.set(attempt.record, target);
      return attempt;
    },
    checkAborted: () => checkAborted(exchange),
  });
}

async function allowsExtra(hooks: readonly StageHooks[]): Promise<boolean> {
  for (const { onExtraAttempt } of hooks) if ((await onExtraAttempt?.()) === false) return false;
  return true;
}

function relayOf(
  exchange: LiveExchange,
  { writing }: CallEnvironment,
  hooks: readonly StageHooks[],
  source: AnswerSource,
  continuation: Continuation | undefined,
  blocks: PromptBlocks | undefined,
  asksTargets: boolean,
): Relay {
  const { fields } = exchange.body;
  const options = fields["stream_options"] as { readonly include_usage?: unknown } | null | undefined;
  return new Relay(exchange, {
    hooks,
    source,
    continuation,
    hidesUsage: options?.include_usage !== true,
    hidesTokenIds: asksTargets && continuation !== undefined && fields["return_token_ids"] !== true,
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

const noBudget = new AttemptBudget(0);

function checkAborted({ abortReason }: LiveExchange): void {
  if (abortReason !== undefined) throw abortReason;
}
