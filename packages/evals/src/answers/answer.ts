import type { ServingRecordInfo } from "@octavo/protocol";

/** What a target gave for a case, and how long it took. */
export interface Answer {
  readonly caseId: string;
  /** Name of the target, such as `baseline` or a replica's id. */
  readonly target: string;
  readonly model: string | undefined;
  /** The `id` that the server gave it. */
  readonly responseId?: string;
  readonly text: string;
  readonly reasoning: string | undefined;
  readonly toolCalls: readonly AnsweredToolCall[];
  readonly finishReason: string | undefined;
  /** The output token by token, where `logprobs` was asked for and given. */
  readonly tokens?: readonly AnsweredToken[];
  /** Octavo's digest of the logits behind each output token, where they were asked for: equal for equal bits. */
  readonly logitsDigests?: readonly string[];
  readonly usage: AnswerUsage;
  readonly timing: AnswerTiming;
  /** Octavo's record of how it was served; undefined from other servers. */
  readonly serving: ServingRecordInfo | undefined;
  /** Response headers that begin with `x-`, in lower case, and `traceresponse`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly failure: AnswerFailure | undefined;
}

/** A tool call of an answer; arguments as the model wrote them. */
export interface AnsweredToolCall {
  readonly id: string;
  readonly name: string;
  /** As the model wrote them; need not be JSON. */
  readonly arguments: string;
}

/** A token of an answer with its log-probability (natural logarithm). */
export interface AnsweredToken {
  readonly text: string;
  readonly logprob: number;
}

/** Tokens of an answer, as the server counted them. */
export interface AnswerUsage {
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
  readonly cachedTokens: number | undefined;
}

/** Times as the client saw them. */
export interface AnswerTiming {
  /** Milliseconds since 1970 at which the arrival process wanted it sent: open-loop latencies count from here. */
  readonly scheduledEpochMs: number;
  readonly sentEpochMs: number;
  readonly durationMs: number;
  /** From sending to each piece of output; the first is the time to the first token. Empty when it was not streamed. */
  readonly pieceMs: readonly number[];
}

/** Why there is no answer. */
export interface AnswerFailure {
  /**
   * The server's own error code (`http_500` and the like where it gave none), or one of `connection` (no answer began),
   * `timeout`, `truncated` (it began and did not end in `[DONE]`), `invalid_response`, `payload_too_large`, `stream_error`,
   * `cancelled`.
   */
  readonly code: string;
  readonly httpStatus: number | undefined;
  readonly message: string;
}
