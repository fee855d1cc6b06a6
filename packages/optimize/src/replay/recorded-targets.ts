import { groupBy } from "@octavo/protocol";
import type { Random } from "@octavo/statistics";
import { type LoggedAttempt, type LoggedCall, TargetLoad } from "../errors/gateway-log.js";

/** What a target did with a call, as far as the gateway's log says. */
export type TargetAnswer =
  | { readonly kind: "answer"; readonly firstByteMs: number; readonly durationMs: number }
  /** A status other than success. */
  | { readonly kind: "status"; readonly status: number; readonly durationMs: number }
  /** The connection broke, before the answer or in the middle of it. */
  | { readonly kind: "broken"; readonly firstByteMs: number | undefined; readonly durationMs: number }
  | { readonly kind: "invalid"; readonly durationMs: number }
  | { readonly kind: "silent" };

/** The gateway gave it up: what it would have answered, and when, is not known. */
interface GivenUp {
  readonly kind: "given-up";
  readonly durationMs: number;
}

interface RecordedAnswer {
  readonly callId: string;
  readonly atMs: number;
  readonly isStream: boolean;
  /** Attempts of the call that the target had before. */
  readonly turn: number;
  /** Other calls that the target had. */
  readonly besides: number;
  readonly what: TargetAnswer | GivenUp;
}

/** A call that a stand-in is asked. */
export interface TargetCall {
  /** Of the line that is replayed. */
  readonly callId: string;
  readonly atMs: number;
  readonly isStream: boolean;
  /** How often this target was asked for it before. */
  readonly turn: number;
  /** Other calls that the stand-in has. */
  readonly besides: number;
  /** Whether it is answered as it was recorded, where it was. */
  readonly isAsRecorded: boolean;
  readonly random: Random;
}

/** By which a target says that it has too much to do. */
export const busyStatuses: ReadonlySet<number> = new Set([429, 529]);

/** Recorded answers that are alike enough to be drawn from; a target with fewer has not shown what it does. */
export const numAlike = 20;
/** Of a target, those nearest to what is replayed. */
const mostAnswers = 2000;

/** A target as the gateway's log shows it. */
export class RecordedTarget {
  readonly #answers: readonly RecordedAnswer[];
  readonly #answered: readonly RecordedAnswer[];
  readonly #own: ReadonlyMap<string, readonly RecordedAnswer[]>;
  readonly #isBounded: boolean;

  constructor(answers: readonly RecordedAnswer[]) {
    this.#answers = answers;
    this.#answered = answers.filter(({ what }) => what.kind === "answer");
    this.#isBounded = answers.some(({ what }) => what.kind === "status" && busyStatuses.has(what.status));
    this.#own = groupBy(answers, ({ callId }) => callId);
  }

  get numAnswers(): number {
    return this.#answers.length;
  }

  /**
   * What it did with this very call where that is asked for and recorded; else what it did with one of the recorded calls that are most
   * like it: streamed or not, asked again or for the first time, beside about as many others (just as many, of a target that refuses what is too much), at about that time. Of what was given up, one of its answers that took longer, or
   * nothing at all. Undefined where the log has no call of it.
   */
  answerTo(asked: TargetCall): TargetAnswer | undefined {
    const own = asked.isAsRecorded ? this.#own.get(asked.callId)?.[asked.turn] : undefined;
    const found = own ?? this.#drawn(this.#answers, asked);
    if (found === undefined) return undefined;
    const { what } = found;
    if (what.kind !== "given-up") return what;
    const later = this.#answered.filter(
      (one) => one.what.kind === "answer" && one.what.firstByteMs > what.durationMs,
    );
    const answer = this.#drawn(later, asked)?.what;
    return answer?.kind === "answer" ? answer : { kind: "silent" };
  }

  #drawn(
    answers: readonly RecordedAnswer[],
    { isStream, turn, besides, atMs, random }: TargetCall,
  ): RecordedAnswer | undefined {
    const load = (count: number): number => (this.#isBounded ? count : Math.round(Math.log2(count + 1)));
    const far = (one: RecordedAnswer) => ({
      form: Number(one.isStream !== isStream) + Number(one.turn > 0 !== turn > 0),
      load: Math.abs(load(one.besides) - load(besides)),
      time: Math.abs(one.atMs - atMs),
    });
    const alike = answers
      .map((answer) => ({ answer, far: far(answer) }))
      .toSorted((a, b) => a.far.form - b.far.form || a.far.load - b.far.load || a.far.time - b.far.time)
      .slice(0, numAlike);
    return alike.length === 0 ? undefined : random.pick(alike).answer;
  }
}

/** Targets by name, from all calls of the log, those nearest to `aroundMs` where there are many. */
export function recordedTargets(
  calls: readonly LoggedCall[],
  aroundMs: number,
): ReadonlyMap<string, RecordedTarget> {
  const load = new TargetLoad(calls);
  const answers = calls.flatMap((call) =>
    call.attempts.map((attempt, index) => ({
      target: attempt.target,
      callId: String(call.fields["request_id"]),
      atMs: attempt.startMs,
      isStream: call.fields["stream"] === true,
      turn: call.attempts.slice(0, index).filter(({ target }) => target === attempt.target).length,
      besides: load.besides(attempt),
      what: answerOf(call, attempt),
    })),
  );
  return new Map(
    [...groupBy(answers, ({ target }) => target)].map(([name, own]) => [
      name,
      new RecordedTarget(
        own
          .toSorted((a, b) => Math.abs(a.atMs - aroundMs) - Math.abs(b.atMs - aroundMs))
          .slice(0, mostAnswers)
          .toSorted((a, b) => a.atMs - b.atMs),
      ),
    ]),
  );
}

function answerOf({ fields, atMs, attempts }: LoggedCall, attempt: LoggedAttempt): RecordedAnswer["what"] {
  const { target, status, startMs, endMs } = attempt;
  const durationMs = Math.max(0, endMs - startMs);
  const seen = fields["first_byte_ms"];
  // the line's first byte is the winner's: of the attempts at its target, the last
  const isWinner = attempts.findLast((one) => one.target === fields["target"]) === attempt;
  const firstByteMs =
    isWinner && target === fields["target"] && typeof seen === "number"
      ? Math.min(durationMs, Math.max(0, seen - (startMs - atMs)))
      : undefined;
  const { error } = fields;
  // a line with one attempt does not say how it ended, but for the call's error
  const outcome = attempt.index === undefined && typeof error === "string" ? error : attempt.outcome;
  if (outcome === "ok") return { kind: "answer", firstByteMs: firstByteMs ?? durationMs, durationMs };
  if (outcome === "stream_interrupted") return { kind: "broken", firstByteMs, durationMs };
  if (outcome === "target_answer_invalid") return { kind: "invalid", durationMs };
  if (outcome === "target_rate_limited") return { kind: "status", status: status ?? 429, durationMs };
  if (outcome === "target_failed" || outcome === "target_rejected" || outcome === "target_unreachable")
    return status !== undefined && status >= 300
      ? { kind: "status", status, durationMs }
      : { kind: "broken", firstByteMs: undefined, durationMs };
  return firstByteMs === undefined
    ? { kind: "given-up", durationMs }
    : { kind: "answer", firstByteMs, durationMs };
}
