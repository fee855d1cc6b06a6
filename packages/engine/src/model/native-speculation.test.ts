import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createEngine } from "../create-engine.js";
import { NgramDrafter } from "../speculation/ngram-drafter.js";
import type { SpeculationOptions } from "../speculation/speculation.js";
import { collect, generationRequest } from "../testing/fakes/engine-fixture.js";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { openNativeModel } from "../testing/oracles/native-model.js";
import { OracleDrafter } from "../testing/drafters/oracle-drafter.js";
import { TestRandom } from "@octavo/text/testing/random";

const temperature = 0.8;
const numBins = 20;
/** Critical value of the chi-square distribution with 19 degrees of freedom: exceeded by chance once in a thousand times. */
const critical = 43.8;

/** A uniform draw from the token's interval in the cumulative distribution of `logits` at a temperature. */
function quantileOf(token: number, logits: Float32Array, atTemperature: number, share: number): number {
  const top = logits.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY);
  let below = 0;
  let total = 0;
  for (const [id, logit] of logits.entries()) {
    const weight = Math.exp((logit - top) / atTemperature);
    total += weight;
    if (id < token) below += weight;
    else if (id === token) below += weight * share;
  }
  return below / total;
}

function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

interface Drawn {
  readonly tokens: number[][];
  /** Chi-square of the quantiles of tokens sampled behind drafts, if they were sampled at this temperature. */
  readonly fitAt: (temperature: number) => number;
  readonly acceptedTokens: number;
}

/** Draws many outputs on real kernels and looks where each token lies in the distribution that its own logits give. */
async function draw(
  speculation: ((outcome: readonly number[][]) => SpeculationOptions) | undefined,
  outcome: readonly number[][] = [],
): Promise<Drawn> {
  const model = await openNativeModel(fixtureCheckpoint("llama3"), "f32");
  const logitsOf = new Map<string, Float32Array>();
  let acceptedTokens = 0;
  const engine = createEngine({
    ...model.parts,
    numBlocks: 256,
    blockSize: 4,
    maxNumBatchedTokens: 128,
    speculation: speculation?.(outcome),
    hooks: {
      onLogits: (id, _, position, logits) => void logitsOf.set(`${id}:${position}`, logits.slice()),
    },
  });
  engine.observe({ onDraft: (_, accepted) => void (acceptedTokens += accepted) });
  const requests = Array.from({ length: 400 }, (_, seed) => ({
    ...generationRequest([1, 2, 3, 1, 2, 3], { maxTokens: 12, temperature, seed: BigInt(seed) }),
    requestId: String(seed),
  }));
  const tokens: number[][] = [];
  for (let first = 0; first < requests.length; first += 20) {
    const batch = requests.slice(first, first + 20);
    const results = await Promise.all(batch.map((request) => collect(engine.generate(request))));
    tokens.push(...results.map(({ sequences }) => sequences[0]!.tokens));
  }
  await engine[Symbol.asyncDispose]();
  await model.dispose();
  const fitAt = (atTemperature: number): number => {
    const random = new TestRandom(5);
    const counts = Array.from({ length: numBins }, () => 0);
    for (const [id, output] of tokens.entries()) {
      for (const [index, token] of output.entries()) {
        const logits = logitsOf.get(`${id}:${5 + index}`);
        assert.ok(logits !== undefined);
        const quantile = quantileOf(token, logits, atTemperature, random.next());
        counts[Math.min(numBins - 1, Math.floor(quantile * numBins))]! += 1;
      }
    }
    return chiSquare(counts);
  };
  return { tokens, fitAt, acceptedTokens };
}

describe("sampling under speculation, on real kernels", () => {
  const oracle = (outcome: readonly number[][]): SpeculationOptions => ({
    createDrafter: () =>
      new OracleDrafter((id) => outcome[Number(id)], { vocabSize: 64, seed: 2, shareRight: 0.7 }),
    numSpeculativeTokens: 5,
    adaptive: false,
  });
  const ngram = (): SpeculationOptions => ({
    createDrafter: () => new NgramDrafter({ promptLookupMin: 1, promptLookupMax: 3 }),
    numSpeculativeTokens: 5,
    adaptive: false,
  });

  test("draws from the model's distribution, and a seed's tokens are the same as without", async () => {
    const plain = await draw(undefined);
    assert.ok(plain.fitAt(temperature) < critical, `${plain.fitAt(temperature)} without`);
    for (const speculation of [oracle, ngram]) {
      const drafted = await draw(speculation, plain.tokens);
      assert.ok(drafted.acceptedTokens > 300, `${drafted.acceptedTokens} accepted`);
      assert.ok(drafted.fitAt(temperature) < critical, `${drafted.fitAt(temperature)}`);
      assert.deepEqual(drafted.tokens, plain.tokens);
    }
    // The test would notice if draws were somewhat too sharp.
    assert.ok(plain.fitAt(temperature * 1.15) > critical, `${plain.fitAt(temperature * 1.15)}`);
  });
});
