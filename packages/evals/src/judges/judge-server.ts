import { asArray, asRecord, asString, OctavoError } from "@octavo/protocol";
import type { OpenAiServer } from "../http/openai-server.js";
import type { ServerFailure } from "../http/server-failure.js";
import type { JudgeAnswer, JudgeQuestion } from "./judge.js";
import { labelProbabilities, readTokenChoices } from "./label-probabilities.js";
import type { JudgeSpending } from "./judge-spending.js";
import { constraintOf, instructionOf, readVerdict, repairOf, type VerdictFormat } from "./verdict-format.js";

/** Request forms, from the most informative to the one that every server supports. */
interface Rung {
  readonly format: VerdictFormat;
  readonly topLogprobs: number | undefined;
}

const rungs: readonly Rung[] = (["json_schema", "choice", "text"] as const).flatMap((format) =>
  [20, 5, undefined].map((topLogprobs) => ({ format, topLogprobs })),
);

export type Attempt =
  | { readonly ok: true; readonly answer: JudgeAnswer }
  /** `said`: what the judge answered instead of a verdict. */
  | { readonly ok: false; readonly failure: ServerFailure; readonly said?: string };

interface JudgeRequest {
  readonly model: string;
  readonly maxTokens: number;
  readonly maxTokensField: string;
  readonly extraBody: Readonly<Record<string, unknown>>;
}

/**
 * Asks one question at a time of what the server can do: constrained verdicts and logprobs are tried once, and what is
 * refused or ignored is not asked for again. A refusal that no rung avoids is the question's own.
 */
export class JudgeServer {
  readonly #server: OpenAiServer;
  readonly #request: JudgeRequest;
  readonly #spending: JudgeSpending;
  /** Forms before it were refused or ignored by the server. */
  #floor = 0;
  #isSettled = false;
  #settling: Promise<unknown> | undefined;

  constructor(server: OpenAiServer, request: JudgeRequest, spending: JudgeSpending) {
    this.#server = server;
    this.#request = request;
    this.#spending = spending;
  }

  /** One attempt; a failure may be worth another. Rejects when the signal is aborted. */
  async attempt(question: JudgeQuestion, signal: AbortSignal): Promise<Attempt> {
    // one round only: a judge that hangs must not be waited for once per question
    if (!this.#isSettled && this.#settling !== undefined) {
      await this.#settling.catch(() => undefined);
      signal.throwIfAborted();
    }
    const climbing = this.#climb(question, signal);
    if (this.#isSettled || this.#settling !== undefined) return climbing;
    this.#settling = climbing;
    try {
      return await climbing;
    } finally {
      this.#settling = undefined;
    }
  }

  async #climb(question: JudgeQuestion, signal: AbortSignal): Promise<Attempt> {
    let last: Attempt | undefined;
    let ignored: VerdictFormat | undefined;
    for (const [index, rung] of rungs.entries()) {
      if (index < this.#floor || rung.format === ignored) continue;
      if (rung.format === "choice" && question.withReason) continue;
      last = await this.#ask(question, rung, signal);
      const isLastForm = this.#isSettled || rung.format === "text";
      if (isLastForm && !last.ok && last.said !== undefined)
        last = await this.#ask(question, rung, signal, last.said);
      if (this.#isSettled) return last;
      const isRefused = !last.ok && refusals.has(last.failure.httpStatus ?? 0);
      const isProse = !last.ok && last.failure.code === unreadable;
      if (isRefused) continue;
      if (isProse && rung.format !== "text") {
        ignored = rung.format;
        continue;
      }
      // one that answers in prose even when asked nicely goes on doing so: other questions need not climb again
      if (last.ok || isProse) {
        this.#floor = index;
        this.#isSettled = true;
      }
      return last;
    }
    return last ?? { ok: false, failure: failed(unreadable, "nothing could be asked") };
  }

  /** @param said the judge's answer to the same question that was no verdict: it is shown to it, and asked for one */
  async #ask(question: JudgeQuestion, rung: Rung, signal: AbortSignal, said?: string): Promise<Attempt> {
    const refusal = this.#spending.refusal();
    if (refusal !== undefined) return { ok: false, failure: failed("spending_limit", refusal) };
    this.#spending.called();
    const { model, maxTokens, maxTokensField, extraBody } = this.#request;
    const reply = await this.#server.json({
      path: "/chat/completions",
      signal,
      body: {
        model,
        messages: [
          { role: "system", content: `${question.system}\n\n${instructionOf(rung.format, question)}` },
          { role: "user", content: question.user },
          ...(said === undefined
            ? []
            : [
                { role: "assistant", content: said },
                { role: "user", content: repairOf(rung.format, question) },
              ]),
        ],
        temperature: 0,
        [maxTokensField]: maxTokens,
        ...(rung.topLogprobs === undefined ? {} : { logprobs: true, top_logprobs: rung.topLogprobs }),
        ...constraintOf(rung.format, question),
        ...extraBody,
      },
    });
    if (!reply.ok) return reply;
    this.#spending.answered(asRecord(reply.value)["usage"]);
    const choice = asRecord(asArray(asRecord(reply.value)["choices"])[0]);
    const content = withoutThoughts(asString(asRecord(choice["message"])["content"]) ?? "");
    const verdict = readVerdict(content, question);
    if (verdict === undefined) {
      const isCut = choice["finish_reason"] === "length";
      const quoted = JSON.stringify(content.slice(0, 120));
      if (isCut)
        return {
          ok: false,
          failure: failed("cut", `its answer was cut at ${maxTokens} tokens: ${quoted}; allow it more`),
        };
      return { ok: false, failure: failed(unreadable, `its answer is no verdict: ${quoted}`), said: content };
    }
    const probabilities =
      verdict.place &&
      labelProbabilities(readTokenChoices(choice["logprobs"]), verdict.place, question.labels);
    return { ok: true, answer: { label: verdict.label, probabilities, reason: verdict.reason } };
  }
}

/** As every failure of a judge reaches evaluators. */
export function judgeFailed(name: string, { code, message }: ServerFailure): OctavoError {
  return new OctavoError("judge_failed", `judge ${name}: ${code}: ${message}`);
}

const unreadable = "no_verdict";
/** Statuses that say that a field of the request is not taken. */
const refusals: ReadonlySet<number> = new Set([400, 422, 501]);

function failed(code: string, message: string): ServerFailure {
  return { code, httpStatus: undefined, message, retryable: false, retryAfterMs: undefined };
}

/** Servers that do not tell reasoning apart leave it before the answer. */
function withoutThoughts(content: string): string {
  return content.replace(/^\s*<think>[\s\S]*?<\/think>\s*/, "");
}
