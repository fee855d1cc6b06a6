import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { asArray, asObjects, asRecord } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { OpenAiServer, type ServerSettings } from "../http/openai-server.js";
import { serverFailure, type ServerFailure } from "../http/server-failure.js";
import type { JudgeAnswer, JudgeModel, JudgeQuestion } from "./judge.js";
import { judgeFailed, JudgeServer } from "./judge-server.js";
import { JudgeSpending, type SpendingLimits } from "./judge-spending.js";
import { Limiter } from "./limiter.js";
import { Outage } from "./outage.js";

/** A judge behind an OpenAI-compatible endpoint. Times in ms. */
export interface OpenAiJudgeSettings extends ServerSettings, SpendingLimits {
  readonly model: string;
  /** Limit on one attempt. Default 120,000. */
  readonly timeoutMs?: number;
  /** Questions in flight. Default 8. */
  readonly concurrency?: number;
  /** After a failure that may pass: connection, timeout, 429, 5xx. Default 3. */
  readonly retries?: number;
  /** Before the first retry; doubled before each further one. Default 500. */
  readonly backoffMs?: number;
  /** Limit on an answer, with the reason and a model's own reasoning. Default 1,024. */
  readonly maxTokens?: number;
  /** How newer models of OpenAI want the limit to be called. Default `max_tokens`. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens";
  /** Laid over every body, such as `{"temperature": 1}` for models that take no other. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  /** A judge that has failed for so long is given up: questions then fail at once. Default 60,000. */
  readonly patienceMs?: number;
  /** How often a judge that was given up is asked again. Default 30,000. */
  readonly probeIntervalMs?: number;
  /** Answers that are kept, so that no question is asked twice. Default 10,000. */
  readonly cachedAnswers?: number;
}

const longestWaitMs = 60_000;

interface Failed {
  readonly ok: false;
  readonly failure: ServerFailure;
}

/** A model behind an OpenAI-compatible endpoint as a judge. */
export class OpenAiJudge implements JudgeModel {
  readonly name: string;
  readonly baseUrl: string;
  readonly #settings: OpenAiJudgeSettings;
  readonly #limiter: Limiter;
  readonly #spending: JudgeSpending;
  readonly #http: OpenAiServer;
  readonly #server: JudgeServer;
  readonly #answers = new Map<string, JudgeAnswer>();
  readonly #random = new Random(1);
  readonly #outage: Outage;

  /** @throws OctavoError `invalid_option` when the base URL is none */
  constructor(
    settings: OpenAiJudgeSettings,
    limiter = new Limiter(settings.concurrency ?? 8),
    spending = new JudgeSpending(settings),
  ) {
    const server = new OpenAiServer({ timeoutMs: 120_000, ...settings });
    this.name = settings.model;
    this.baseUrl = server.baseUrl;
    this.#http = server;
    this.#settings = settings;
    this.#limiter = limiter;
    this.#spending = spending;
    this.#outage = new Outage({
      patienceMs: settings.patienceMs ?? 60_000,
      probeIntervalMs: settings.probeIntervalMs ?? 30_000,
    });
    const request = {
      model: settings.model,
      maxTokens: settings.maxTokens ?? 1024,
      maxTokensField: settings.maxTokensField ?? "max_tokens",
      extraBody: settings.extraBody ?? {},
    };
    this.#server = new JudgeServer(server, request, spending);
  }

  withModel = (model: string): OpenAiJudge =>
    model === this.name ? this : new OpenAiJudge({ ...this.#settings, model }, this.#limiter, this.#spending);

  async ask(question: JudgeQuestion, { signal }: { readonly signal: AbortSignal }): Promise<JudgeAnswer> {
    const key = createHash("sha256").update(JSON.stringify(question)).digest("base64");
    const known = this.#answers.get(key);
    if (known !== undefined) {
      // the oldest of the map is the least recently used
      this.#answers.delete(key);
      this.#answers.set(key, known);
      return known;
    }
    const attempt = await this.#limiter.run(signal, () =>
      this.#attempts(() => this.#server.attempt(question, signal), signal),
    );
    if (!attempt.ok) throw judgeFailed(this.name, attempt.failure);
    this.#answers.set(key, attempt.answer);
    if (this.#answers.size > (this.#settings.cachedAnswers ?? 10_000)) {
      const [oldest] = this.#answers.keys();
      if (oldest !== undefined) this.#answers.delete(oldest);
    }
    return attempt.answer;
  }

  embed = async (
    texts: readonly string[],
    { signal }: { readonly signal: AbortSignal },
  ): Promise<readonly (readonly number[])[]> => {
    const body = { model: this.name, input: texts, encoding_format: "float" };
    const reply = await this.#limiter.run(signal, () =>
      this.#attempts(async () => {
        const refusal = this.#spending.refusal();
        if (refusal !== undefined)
          return { ok: false, failure: serverFailure("spending_limit", refusal, false) };
        this.#spending.called();
        return this.#http.json({ path: "/embeddings", body, signal });
      }, signal),
    );
    if (!reply.ok) throw judgeFailed(this.name, reply.failure);
    this.#spending.answered(asRecord(reply.value)["usage"]);
    const vectors = asObjects(asRecord(reply.value)["data"])
      .toSorted((a, b) => Number(a["index"]) - Number(b["index"]))
      .map(({ embedding }) => asArray(embedding).filter((value) => typeof value === "number"));
    const [first] = vectors;
    if (
      first === undefined ||
      first.length === 0 ||
      vectors.length !== texts.length ||
      vectors.some(({ length }) => length !== first.length)
    ) {
      const message = `${texts.length} texts were sent, and what came is not as many vectors of one length`;
      throw judgeFailed(this.name, serverFailure("invalid_response", message, false));
    }
    return vectors;
  };

  async #attempts<Tried extends { readonly ok: true } | Failed>(
    attemptOnce: () => Promise<Tried | Failed>,
    signal: AbortSignal,
  ): Promise<Tried | Failed> {
    const retries = this.#settings.retries ?? 3;
    for (let attempts = 1; ; attempts++) {
      const refusal = this.#outage.refusal();
      if (refusal !== undefined) return { ok: false, failure: refusal };
      const attempt = await attemptOnce();
      if (attempt.ok || !attempt.failure.retryable) {
        this.#outage.ended();
        return attempt;
      }
      this.#outage.failed(attempt.failure);
      if (attempts > retries || this.#outage.hasGivenUp) return attempt;
      await this.#wait(attempt.failure, attempts, signal);
    }
  }

  async #wait(failure: ServerFailure, attempts: number, signal: AbortSignal): Promise<void> {
    const backoffMs = (this.#settings.backoffMs ?? 500) * 2 ** (attempts - 1);
    const asked = failure.retryAfterMs ?? 0;
    // between half the delay and all of it, so that requests that failed together are not retried together
    const waitMs = Math.max(asked, backoffMs * (0.5 + this.#random.uniform() / 2));
    try {
      await sleep(Math.min(waitMs, longestWaitMs), undefined, { signal });
    } catch {
      throw signal.reason as Error;
    }
  }
}

/** A judge behind `baseUrl`. */
export function openAiJudge(settings: OpenAiJudgeSettings): OpenAiJudge {
  return new OpenAiJudge(settings);
}
