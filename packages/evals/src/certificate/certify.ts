import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import { samplingOf } from "../checks/collecting/collect-cases.js";
import { outputOf } from "../checks/collecting/from-answer.js";
import type { Target } from "../targets/target.js";
import type {
  Certificate,
  CertificateCondition,
  CertifiedCondition,
  CertifySettings,
  Divergence,
} from "./certificate.js";

type Fields = Readonly<Record<string, unknown>>;

/** A case's first run, alone and with nothing cached. */
interface Reference {
  readonly evalCase: EvalCase;
  readonly answer: Answer;
  readonly digests: readonly string[];
}

const mostDivergences = 100;

/**
 * Runs every case alone under a salt of its own, so that none of it is cached, then again in each condition, and compares the
 * logits' digests token by token. Where a case samples it is seeded, so that the same bits are the same tokens.
 * @throws OctavoError `invalid_option` without cases; the signal's reason when it is aborted
 */
export async function certify(
  target: Target,
  cases: readonly EvalCase[],
  settings: CertifySettings,
): Promise<Certificate> {
  if (cases.length === 0)
    throw new OctavoError("invalid_option", "there are no cases to certify with", { param: "dataset" });
  return new Certification(target, settings).run(cases);
}

class Certification {
  readonly #target: Target;
  readonly #settings: CertifySettings;
  readonly #random: Random;
  readonly #counts = new Map<CertificateCondition, CertifiedCondition>();
  readonly #divergences: Divergence[] = [];
  readonly #notes: string[] = [];
  readonly #salt: string;
  #model: string | undefined;
  #done = 0;

  constructor(target: Target, settings: CertifySettings) {
    this.#target = target;
    this.#settings = settings;
    this.#random = new Random(settings.seed);
    // Unique to this run, so that prefixes cached by an earlier run are not hit.
    this.#salt = `octavo-certify-${settings.seed}-${Date.now().toString(36)}`;
  }

  async run(cases: readonly EvalCase[]): Promise<Certificate> {
    const takesFaults = await this.#takesFaults(cases[0]!);
    const total = cases.length * (3 + this.#settings.rounds + (takesFaults ? 2 : 0));
    const progress = (): void => this.#settings.onProgress?.({ done: (this.#done += 1), total });
    const references: Reference[] = [];
    let numFailed = 0;
    for (const [index, evalCase] of cases.entries()) {
      const salt = `${this.#salt}-${index}`;
      const answer = await this.#ask(evalCase, { cache_salt: salt });
      progress();
      if (answer.failure !== undefined || answer.logitsDigests === undefined) {
        numFailed += 1;
        if (answer.failure !== undefined) this.#notes.push(`${evalCase.id}: ${answer.failure.message}`);
        continue;
      }
      this.#model ??= answer.model;
      const reference = { evalCase, answer, digests: answer.logitsDigests };
      references.push(reference);
      await this.#compare(reference, "cached", { cache_salt: salt });
      progress();
      await this.#compare(reference, "whole", { cache_salt: salt }, false);
      progress();
    }
    if (references.length === 0 && this.#notes.length === 0)
      this.#notes.push("The server gives no digests of logits, so nothing could be compared.");
    await this.#inBatches(references, progress);
    if (takesFaults) await this.#underFaults(references, progress);
    else this.#notes.push("The server takes no faults: nothing was preempted or evicted by force.");
    const conditions = [...this.#counts.values()];
    const isDiverged = conditions.some(({ divergedRuns }) => divergedRuns > 0);
    const isWhole =
      references.length > 0 && numFailed === 0 && conditions.every(({ failedRuns }) => failedRuns === 0);
    return {
      verdict: isDiverged ? "fail" : isWhole ? "pass" : "inconclusive",
      target: this.#target.name,
      model: this.#model,
      numCases: cases.length,
      conditions,
      divergences: this.#divergences,
      notes: this.#notes.slice(0, mostDivergences),
    };
  }

  /** Each case runs in this many batches with other cases: with chunked prefill beside other requests, and with shared prefixes. */
  async #inBatches(references: readonly Reference[], progress: () => void): Promise<void> {
    const { batchSize, rounds } = this.#settings;
    for (let round = 0; round < rounds; round += 1) {
      const order = references.map((reference) => ({ reference, at: this.#random.uniform() }));
      order.sort((a, b) => a.at - b.at);
      for (let start = 0; start < order.length; start += batchSize) {
        const batch = order.slice(start, start + batchSize);
        const salt = `${this.#salt}-batch-${round}`;
        await Promise.all(
          batch.map(async ({ reference }) => {
            await this.#compare(reference, "batch", { cache_salt: salt });
            progress();
          }),
        );
      }
    }
  }

  /** Each case loses its blocks after a token drawn from its answer. */
  async #underFaults(references: readonly Reference[], progress: () => void): Promise<void> {
    for (const reference of references) {
      const at = Math.floor(this.#random.uniform() * reference.digests.length);
      await this.#compare(reference, "preempted", { octavo: { faults: { preempt_at_token: at } } });
      progress();
      await this.#compare(reference, "evicted", { octavo: { faults: { evict_at_token: [0, at] } } });
      progress();
    }
  }

  async #compare(
    reference: Reference,
    condition: CertificateCondition,
    extra: Fields,
    stream = true,
  ): Promise<void> {
    const { evalCase, digests } = reference;
    const answer = await this.#ask(evalCase, extra, stream);
    const got = answer.failure === undefined ? answer.logitsDigests : undefined;
    const before = this.#counts.get(condition) ?? {
      name: condition,
      runs: 0,
      tokens: 0,
      divergedRuns: 0,
      failedRuns: 0,
    };
    if (got === undefined) {
      this.#counts.set(condition, { ...before, failedRuns: before.failedRuns + 1 });
      const why = answer.failure?.message ?? "no digests were given";
      this.#notes.push(`${evalCase.id}, ${condition}: ${why}`);
      return;
    }
    const isVisible = outputOf(answer) !== outputOf(reference.answer);
    // the same logits read differently are a difference behind the last token
    const token = firstDifference(digests, got) ?? (isVisible ? digests.length : undefined);
    this.#counts.set(condition, {
      ...before,
      runs: before.runs + 1,
      tokens: before.tokens + got.length,
      divergedRuns: before.divergedRuns + (token === undefined ? 0 : 1),
    });
    if (token === undefined || this.#divergences.length >= mostDivergences) return;
    this.#divergences.push({
      caseId: evalCase.id,
      condition,
      token,
      expected: digests[token],
      got: got[token],
      isVisible,
    });
  }

  #ask(evalCase: EvalCase, extra: Fields, stream = true): Promise<Answer> {
    const { seed, signal } = this.#settings;
    const extraBody = { ...samplingOf(evalCase, seed), ...extra };
    return this.#target.answer(evalCase, { signal, stream, wantsDigests: true, extraBody });
  }

  async #takesFaults(evalCase: EvalCase): Promise<boolean> {
    const probe = { ...evalCase, parameters: { ...evalCase.parameters, maxTokens: 1 } };
    const { failure, logitsDigests } = await this.#ask(probe, { octavo: { faults: { evict_at_token: 0 } } });
    return failure === undefined && logitsDigests !== undefined;
  }
}

/** Undefined where two lists are the same. */
function firstDifference(a: readonly string[], b: readonly string[]): number | undefined {
  const length = Math.max(a.length, b.length);
  for (let index = 0; index < length; index += 1) if (a[index] !== b[index]) return index;
  return undefined;
}
