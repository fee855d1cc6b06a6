import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";

/** Something that answers cases: an OpenAI-compatible server, one replica of it, or a function. */
export interface Target {
  readonly name: string;
  /** Resolves with a failed answer when the server fails; rejects only when `signal` is aborted. */
  answer(evalCase: EvalCase, options: AnswerOptions): Promise<Answer>;
  /** What the server counts, as Prometheus reads it; undefined where it does not tell. Rejects only when `signal` is aborted. */
  metrics?(signal: AbortSignal): Promise<string | undefined>;
  /**
   * Requests that ran beside one of a tenant, by the id in its serving record; undefined where the server does not report them.
   * Rejects only when `signal` is aborted.
   */
  neighbours?(
    requestId: string,
    tenant: string | undefined,
    signal: AbortSignal,
  ): Promise<readonly Neighbour[] | undefined>;
}

/** A request that was there at some time between another's arrival and its end: what it takes to send its like again. */
export interface Neighbour {
  readonly requestId: string;
  /** From the other's arrival; below 0 where it was there before. */
  readonly arrivalOffsetMs: number;
  readonly promptTokens: number;
  /** Cached tokens of the prompt. */
  readonly cachedTokens: number;
  /** Output tokens of all its sequences. */
  readonly outputTokens: number;
  /** Compute time that it had while the other was there. */
  readonly kernelMs: number;
}

/** What is asked for along with an answer. */
export interface AnswerOptions {
  readonly signal: AbortSignal;
  /** Defaults to now. */
  readonly scheduledEpochMs?: number;
  readonly tenant?: string;
  /** Laid over the case's own parameters. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  /** False asks for the answer at once. A target that was told how to ask always asks that way. Default true. */
  readonly stream?: boolean;
  /** Asks servers that promise equal bits for digests of their logits. */
  readonly wantsDigests?: boolean;
  readonly extraHeaders?: Readonly<Record<string, string>>;
}
