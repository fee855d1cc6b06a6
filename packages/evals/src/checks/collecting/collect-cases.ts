import type { Answer } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Score } from "../../evaluators/evaluator.js";
import { journalKey } from "../../journal/journal.js";
import { concurrently } from "../../runners/concurrently.js";
import { scorePair } from "../../runners/score-pair.js";
import type { Target } from "../../targets/target.js";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import { observationFromAnswer, outputOf } from "./from-answer.js";

type Fields = Readonly<Record<string, unknown>>;

/** Answers to the case so far, by condition. */
type EarlierAnswers = ReadonlyMap<string, Answer>;

export interface CollectedRequest {
  readonly condition: string;
  readonly target: Target;
  readonly tags?: readonly string[];
  /** Laid over the case's own parameters. */
  readonly extraBody?: Fields | ((earlier: EarlierAnswers) => Fields);
  /** Sent and forgotten, as to warm a cache. */
  readonly isWarmUp?: boolean;
}

/** One case with its requests in the order in which they are sent, one after another: conditions lie close in time. */
export interface CasePlan {
  readonly evalCase: EvalCase;
  readonly requests: readonly CollectedRequest[];
}

interface CollectOptions {
  readonly bed: Pick<TestBed, "evaluators" | "seed" | "signal" | "onProgress" | "journal">;
  /** What the observations are for; those that a journal holds for the same plan are not sent again. */
  readonly purpose: string;
  /** Cases under way at once. */
  readonly concurrency: number;
  /** Condition whose answer the others are compared with by evaluators that compare. */
  readonly baseline?: string;
  /** An answer that equals this condition's has its scores: a judge need not be asked twice. */
  readonly sameScoresAs?: string;
  /** Asks for tokens with logprobs, as long as servers give them. */
  readonly wantsTokens?: boolean;
  /** Asks servers that promise equal bits for digests of their logits. */
  readonly wantsDigests?: boolean;
  /** Fields of an observation that only this check fills in. */
  readonly complete?: (observation: Observation, sent: SentRequest) => Promise<Observation> | Observation;
}

export interface SentRequest {
  readonly evalCase: EvalCase;
  readonly planned: CollectedRequest;
  readonly answer: Answer;
}

/** Tag of cases whose answers were asked for at once and not as streams. */
const wholeTag = "not-streamed";

/**
 * Sends all cases and scores their answers. Greedy unless a case samples; then with the run's seed. Half of the cases, by
 * their ids, are asked for whole answers and not for streams, the same ones under every condition.
 */
export async function collectCases(
  plans: readonly CasePlan[],
  options: CollectOptions,
): Promise<readonly Observation[]> {
  const { bed, concurrency } = options;
  const total = plans.reduce((sum, { requests }) => sum + requests.length, 0);
  let done = 0;
  const collector = new CaseCollector(options);
  const collected = new Map<number, readonly Observation[]>();
  const work = async (index: number, signal: AbortSignal) => ({
    index,
    observations: await collector.collect(plans[index]!, signal),
  });
  for await (const { index, observations } of concurrently(plans.keys(), concurrency, work, bed.signal)) {
    collected.set(index, observations);
    done += plans[index]!.requests.length;
    bed.onProgress?.({ done, total });
  }
  return plans.flatMap((_, index) => collected.get(index) ?? []);
}

class CaseCollector {
  readonly #options: CollectOptions;
  #asksTokens: boolean;

  constructor(options: CollectOptions) {
    this.#options = options;
    this.#asksTokens = options.wantsTokens ?? false;
  }

  async collect(plan: CasePlan, signal: AbortSignal): Promise<readonly Observation[]> {
    const { journal } = this.#options.bed;
    const key = journal === undefined ? "" : keyOf(plan, this.#options);
    const kept = await journal?.get(key);
    if (kept !== undefined) return kept;
    const sent = await this.#send(plan, signal);
    const observations = await this.#score(sent, signal);
    // a case of which a request or a score failed is tried again when the run is resumed
    if (
      observations.every(
        ({ failureCode, failedScores }) => failureCode === undefined && failedScores === undefined,
      )
    )
      await journal?.append(key, observations);
    return observations;
  }

  async #send({ evalCase, requests }: CasePlan, signal: AbortSignal): Promise<readonly SentRequest[]> {
    const earlier = new Map<string, Answer>();
    const sent: SentRequest[] = [];
    for (const planned of requests) {
      const { extraBody } = planned;
      const own = typeof extraBody === "function" ? extraBody(earlier) : extraBody;
      const answer = await this.#ask(evalCase, planned.target, own, signal);
      earlier.set(planned.condition, answer);
      if (planned.isWarmUp !== true) sent.push({ evalCase, planned, answer });
    }
    return sent;
  }

  async #ask(
    evalCase: EvalCase,
    target: Target,
    extraBody: Fields | undefined,
    signal: AbortSignal,
  ): Promise<Answer> {
    const base = { ...samplingOf(evalCase, this.#options.bed.seed), ...extraBody };
    const { wantsDigests = false } = this.#options;
    const options = { signal, wantsDigests, stream: isStreamed(evalCase) };
    if (!this.#asksTokens) return target.answer(evalCase, { ...options, extraBody: base });
    const answer = await target.answer(evalCase, { ...options, extraBody: { ...base, logprobs: true } });
    const isRefused = answer.failure?.httpStatus === 400 && /logprob/i.test(answer.failure.message);
    if (!isRefused) return answer;
    this.#asksTokens = false;
    return target.answer(evalCase, { ...options, extraBody: base });
  }

  async #score(sent: readonly SentRequest[], signal: AbortSignal): Promise<readonly Observation[]> {
    const { baseline, sameScoresAs, complete } = this.#options;
    const compared = sent.find(({ planned }) => planned.condition === baseline)?.answer;
    const model = sent.find(({ planned }) => planned.condition === sameScoresAs);
    const modelScores = model === undefined ? {} : await this.#scoresOf(model, compared, signal);
    const observations: Observation[] = [];
    for (const one of sent) {
      const isSame =
        one === model ||
        (model !== undefined &&
          one.answer.failure === undefined &&
          model.answer.failure === undefined &&
          outputOf(one.answer) === outputOf(model.answer));
      const scores = isSame ? modelScores : await this.#scoresOf(one, compared, signal);
      const { evalCase, planned, answer } = one;
      const { logitsDigests } = answer;
      const observation: Observation = {
        ...observationFromAnswer(answer, {
          condition: planned.condition,
          evalCase,
          scores,
          tags: [...(planned.tags ?? []), ...(isStreamed(evalCase) ? [] : [wholeTag])],
        }),
        ...(logitsDigests === undefined ? {} : { logitsDigest: logitsDigests.join(" ") }),
      };
      observations.push(complete === undefined ? observation : await complete(observation, one));
    }
    return observations;
  }

  async #scoresOf(
    { evalCase, answer }: SentRequest,
    baseline: Answer | undefined,
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, Score>>> {
    if (answer.failure !== undefined) return {};
    const sample = {
      case: evalCase,
      answer,
      ...(baseline === undefined || baseline === answer || baseline.failure !== undefined
        ? {}
        : { baseline }),
    };
    const scores: Record<string, Score> = {};
    for (const evaluator of this.#options.bed.evaluators)
      scores[evaluator.name] = (await scorePair(sample, evaluator, signal)).score;
    return scores;
  }
}

/** Half of the cases, whichever run they are in. */
function isStreamed({ id }: EvalCase): boolean {
  return Number.parseInt(journalKey(id).slice(0, 8), 16) % 2 === 0;
}

/** The same output for the same request: greedy where the case leaves it open, seeded where it samples. */
export function samplingOf({ parameters }: EvalCase, seed: number): Fields {
  if (parameters.temperature === undefined) return { temperature: 0 };
  return parameters.temperature > 0 && parameters.seed === undefined ? { seed } : {};
}

function keyOf({ evalCase, requests }: CasePlan, { purpose, bed }: CollectOptions): string {
  const evaluators = bed.evaluators.map(({ name, spec, fingerprint }) => [name, spec, fingerprint]);
  const sends = requests.map(({ condition, target, tags, extraBody }) => [
    condition,
    target.name,
    tags,
    typeof extraBody === "function" ? "computed" : extraBody,
  ]);
  const text = JSON.stringify([purpose, bed.seed, evalCase, sends, evaluators]);
  return journalKey(text);
}
