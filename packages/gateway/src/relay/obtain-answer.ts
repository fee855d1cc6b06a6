import { setTimeout as sleep } from "node:timers/promises";
import { asObjects, asRecord, OctavoError } from "@octavo/protocol";
import type { PlannedAttempt } from "../exchange/exchange.js";
import type { MaybePromise } from "../exchange/maybe-promise.js";
import type { AttemptReason } from "../exchange/ledger-entry.js";
import type { TargetAttempt, AttemptStart } from "./attempt.js";
import type { AttemptBudget } from "./attempt-budget.js";

export interface ObtainOptions {
  /** Targets in the order in which they are to be asked; the iterator is shared by all attempts of an exchange. */
  readonly planned: readonly PlannedAttempt[];
  /** Plans again, before each attempt but the first: where targets come and go. May wait until one takes calls. */
  readonly replan?: (() => Promise<readonly PlannedAttempt[]>) | undefined;
  readonly maxAttempts: number;
  /** A later target is asked if the first byte takes longer than this. */
  readonly latencyThresholdMs: number | undefined;
  readonly hedgeAfterMs: number | undefined;
  readonly retryOnRefusal: boolean;
  readonly retries: AttemptBudget;
  readonly hedges: AttemptBudget;
  /** Whether stages allow another attempt: it may cost as much as the first. */
  readonly allowsExtra: () => MaybePromise<boolean>;
  /** Whether a target can go on with an answer that another one began. */
  readonly canContinue: (planned: PlannedAttempt) => boolean;
  /** Throws `no_target` where the target takes no calls any more. */
  readonly open: (
    planned: PlannedAttempt,
    reason: AttemptReason,
    firstByteMs: number | undefined,
  ) => TargetAttempt;
  /** Throws where the exchange was ended early. */
  readonly checkAborted: () => void;
}

export interface Obtained {
  readonly attempt: TargetAttempt;
  readonly start: AttemptStart;
}

/** Errors that another target may not have. */
const otherTargetHelps: ReadonlySet<string> = new Set([
  "target_failed",
  "target_timeout",
  "target_rate_limited",
  "target_answer_invalid",
  "stream_interrupted",
  "unsupported_parameter",
  "no_target",
]);

/** Waits between two attempts at one target; other targets are asked at once. */
const backoffMs = 50;

/**
 * Asks targets in order until one begins to answer with success: the next after a failure, beside a slow one where hedging
 * allows it, and the first again when all were asked. Attempts that lose are cancelled at once.
 */
export class AnswerSource {
  readonly #options: ObtainOptions;
  #open: TargetAttempt[] = [];
  readonly #asked: string[] = [];
  #planned: readonly PlannedAttempt[];
  #numAttempts = 0;
  #place = 0;

  constructor(options: ObtainOptions) {
    this.#options = options;
    this.#planned = options.planned;
  }

  /** Cancels what still runs. */
  cancel(): void {
    this.#keep(undefined);
  }

  /** Cancels all others. */
  #keep(winner: TargetAttempt | undefined): void {
    const open = this.#open;
    this.#open = winner === undefined ? [] : [winner];
    for (const attempt of open) if (attempt !== winner) attempt.cancel();
  }

  /** Whether another attempt could be made. */
  get hasMore(): boolean {
    return this.#numAttempts < this.#options.maxAttempts && this.#planned.length > 0;
  }

  /** Throws the last attempt's error, or `no_target` where none is left to ask. */
  async obtain(reason?: AttemptReason): Promise<Obtained> {
    let error: OctavoError | undefined;
    for (;;) {
      this.#options.checkAborted();
      try {
        // each promise that need not be costs a call more than most of its checks
        const first = this.#numAttempts === 0 ? this.#first(reason) : await this.#next(reason, error);
        if (first === undefined) break;
        const obtained = this.#mayHedge
          ? await this.#firstOf(first)
          : { attempt: first, start: await first.ready };
        const isAccepted = !(this.#options.retryOnRefusal && isRefusal(obtained.start) && this.hasMore);
        this.#keep(isAccepted ? obtained.attempt : undefined);
        if (isAccepted) return obtained;
        error = new OctavoError("target_rejected", "the target refused to answer");
      } catch (thrown) {
        this.#options.checkAborted();
        const failure = OctavoError.from(thrown);
        // what an earlier target said tells more than that a later one takes no calls
        if (failure.code !== "no_target" || error === undefined) error = failure;
        if (!otherTargetHelps.has(failure.code)) throw failure;
      }
    }
    throw error ?? noTarget();
  }

  #first(reason: AttemptReason | undefined): TargetAttempt | undefined {
    const next = this.hasMore ? this.#pick(reason) : undefined;
    return next === undefined ? undefined : this.#startNext(next, reason ?? "first");
  }

  #startNext(next: PlannedAttempt, reason: AttemptReason): TargetAttempt {
    this.#place += 1;
    const hasOther = this.#place < this.#planned.length;
    return this.#start(next, reason, hasOther ? this.#options.latencyThresholdMs : undefined);
  }

  /** The next attempt after the first; undefined where none may be made. */
  async #next(
    reason: AttemptReason | undefined,
    error: OctavoError | undefined,
  ): Promise<TargetAttempt | undefined> {
    const { retries, replan } = this.#options;
    if (!this.hasMore) return undefined;
    if (replan !== undefined) this.#follow(await replan());
    const planned = this.#planned;
    const next = this.#pick(reason);
    const isAgain = this.#place >= planned.length;
    // a wrong answer to this request will not be right the second time
    if (
      next === undefined ||
      (isAgain && (reason === "escalation" || error?.code === "unsupported_parameter"))
    )
      return undefined;
    // the budget is for targets in trouble; an answer that was judged, or begun, is another matter
    if (reason === undefined && !retries.take()) return undefined;
    if (!(await this.#options.allowsExtra())) return undefined;
    if (isAgain)
      await sleep(backoffMs * 2 ** Math.min(4, this.#place - planned.length) * (0.5 + Math.random()));
    return this.#startNext(next, reason ?? (isAgain ? "retry" : "fallback"));
  }

  /** Those that have not been asked come first. */
  #follow(planned: readonly PlannedAttempt[]): void {
    const isNew = ({ target }: PlannedAttempt): boolean => !this.#asked.includes(target);
    const fresh = planned.filter(isNew);
    this.#planned = [...fresh, ...planned.filter((one) => !isNew(one))];
    this.#place = fresh.length === 0 ? planned.length : 0;
  }

  /** The next target in turn, passing over those that cannot continue an answer where that is what is wanted. */
  #pick(reason: AttemptReason | undefined): PlannedAttempt | undefined {
    const planned = this.#planned;
    for (let step = 0; step < planned.length; step += 1) {
      const next = planned[(this.#place + step) % planned.length];
      if (next === undefined || (reason === "resume" && !this.#options.canContinue(next))) continue;
      this.#place += step;
      return next;
    }
    return undefined;
  }

  #start(planned: PlannedAttempt, reason: AttemptReason, firstByteMs: number | undefined): TargetAttempt {
    this.#numAttempts += 1;
    this.#asked.push(planned.target);
    const attempt = this.#options.open(planned, reason, firstByteMs);
    this.#open.push(attempt);
    return attempt;
  }

  get #mayHedge(): boolean {
    return this.#options.hedgeAfterMs !== undefined && this.#place < this.#planned.length;
  }

  /** Runs the attempt, and a second one if the first is slow; takes whichever begins to answer first. */
  async #firstOf(first: TargetAttempt): Promise<Obtained> {
    const obtained = first.ready.then((start) => ({ attempt: first, start }));
    const { hedgeAfterMs, hedges } = this.#options;
    const planned = this.#planned;
    if (!this.#mayHedge) return obtained;
    const timer = new AbortController();
    const slow = sleep(hedgeAfterMs, "slow" as const, { signal: timer.signal }).catch(() => "over" as const);
    const settled = obtained.catch(() => "failed" as const);
    const outcome = await Promise.race([settled, slow]);
    timer.abort();
    const next = planned[this.#place];
    if (outcome !== "slow" || next === undefined || !this.hasMore || !hedges.take()) return obtained;
    if (!(await this.#options.allowsExtra()) || first.record.outcome !== "pending") return obtained;
    this.#options.checkAborted();
    this.#place += 1;
    const second = this.#start(next, "hedge", undefined);
    try {
      return await Promise.any([obtained, second.ready.then((start) => ({ attempt: second, start }))]);
    } catch (thrown) {
      throw thrown instanceof AggregateError ? thrown.errors[0] : thrown;
    }
  }
}

function isRefusal(start: AttemptStart): boolean {
  if (start.kind !== "whole") return false;
  const choices = asObjects(start.json["choices"]);
  return (
    choices.length > 0 &&
    choices.every(
      (choice) =>
        choice["finish_reason"] === "content_filter" ||
        typeof asRecord(choice["message"])["refusal"] === "string",
    )
  );
}

export function noTarget(): OctavoError {
  return new OctavoError("no_target", "No target of this model takes calls now.", { retryAfterSeconds: 1 });
}
