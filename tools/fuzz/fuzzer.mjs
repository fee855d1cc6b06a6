// The loop: inputs that reach code that no other has reached are kept and damaged further.
import { OctavoError } from "../../packages/protocol/dist/errors.js";
import { TestRandom } from "../../packages/text/dist/testing/random.js";
import { openCoverage } from "./coverage.mjs";
import { mutated, mutatedJson } from "./mutations.mjs";

/** Inputs between two looks at the coverage, which takes some milliseconds. */
const batchSize = 48;

/** Runs a target over one input; returns what is wrong with it, if anything. An `OctavoError` that blames the input is right. */
export function problemOf(target, bytes) {
  try {
    target.run(bytes);
    return undefined;
  } catch (thrown) {
    if (thrown instanceof OctavoError && thrown.code !== "internal_error") {
      if (thrown.message.length < 4000) return undefined;
      return `the message repeats ${thrown.message.length} characters of the input`;
    }
    return thrown instanceof Error ? (thrown.stack ?? String(thrown)) : String(thrown);
  }
}

/**
 * Fuzzes until `isOver(numRuns)`. `onProblem(bytes, problem)` gets each new kind of problem once, `onProgress` what was reached.
 * Deterministic for a seed, the seeds' bytes and the number of runs.
 */
export function fuzz(
  target,
  { seed, isOver, onProblem = () => {}, onKept = () => {}, onProgress = () => {} },
) {
  const random = new TestRandom(seed);
  const coverage = openCoverage(
    target.covers ?? /\/packages\/(?:text|artifacts|protocol)\/dist\/(?!.*testing)/,
  );
  const corpus = target.seeds().map((bytes) => Buffer.from(bytes));
  const kinds = new Set();
  let numRuns = 0;
  const runOne = (bytes) => {
    numRuns += 1;
    const problem = problemOf(target, bytes);
    if (problem === undefined) return;
    const kind = problem.split("\n").slice(0, 3).join("\n").replaceAll(/\d+/g, "#");
    if (kinds.has(kind)) return;
    kinds.add(kind);
    onProblem(bytes, problem);
  };
  try {
    for (const bytes of corpus) runOne(bytes);
    coverage.takeNew();
    const words = target.words ?? [];
    const maxBytes = target.maxBytes ?? 65_536;
    while (!isOver(numRuns)) {
      // young inputs more often than old ones
      const pick = () => corpus[Math.max(random.below(corpus.length), random.below(corpus.length))];
      const how = { random, words, others: corpus, maxBytes };
      const batch = Array.from({ length: batchSize }, () => {
        const bytes = pick();
        const tree = target.isJson === true && random.below(2) === 0 ? mutatedJson(bytes, how) : undefined;
        return tree === undefined || tree.length > maxBytes ? mutated(bytes, how) : tree;
      });
      for (const bytes of batch) runOne(bytes);
      const added = coverage.takeNew();
      // which of them it was shows when each runs again alone
      for (const bytes of added.size > 0 ? batch : []) {
        problemOf(target, bytes);
        const own = coverage.among(added);
        if (own.length === 0) continue;
        for (const [key] of own) added.delete(key);
        corpus.push(bytes);
        onKept(bytes);
        onProgress({ numRuns, corpus: corpus.length, blocks: coverage.size });
        if (added.size === 0) break;
      }
    }
    return { numRuns, corpus: corpus.length, blocks: coverage.size, problems: kinds.size };
  } finally {
    coverage.close();
  }
}
