import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Activation, Backend, ExpertWeights, Matrix, Op, Vector } from "../../backend.js";
import { assertClose, assertSameBits, matrix, runOps, vector } from "../op-harness.js";
import { activateGated, routeToExperts, type RoutingRule } from "../reference-ops.js";
import { SeededRandom } from "../seeded-random.js";

const hiddenSize = 40;
const fewExperts = 5;

interface Routing extends Omit<RoutingRule, "topK" | "softmaxOver"> {
  readonly selection?: readonly number[];
  readonly scales?: readonly number[];
  readonly isGated?: false;
  readonly weighsInput?: true;
}

interface Mixture {
  /** Default five. */
  readonly numExperts?: number;
  readonly innerSize: number;
  readonly topK: number;
  readonly softmaxOver: "chosen" | "all";
  readonly activation: Activation;
  /** gate and up apart; by index of the expert. */
  readonly apart: (expert: number) => boolean;
  readonly biases: boolean;
  /** Fields of the op beside. */
  readonly rule?: Routing;
}

const plain: Mixture = {
  innerSize: 48,
  topK: 2,
  softmaxOver: "chosen",
  activation: "silu",
  apart: () => false,
  biases: false,
};

const six: Mixture = { ...plain, numExperts: 6 };

/** Mixtures of experts; scores stand in the columns after the hidden ones. */
export function expertsConformance(open: () => Backend): void {
  describe("experts", () => {
    for (const [name, mixture] of [
      ["weights that add up to 1", plain],
      ["weights of a softmax over all experts", { ...plain, softmaxOver: "all", topK: 3 }],
      ["every expert chosen", { ...plain, topK: fewExperts }],
      ["a width that panels do not divide", { ...plain, innerSize: 21, activation: "gelu_tanh" }],
      ["gate and up apart in some experts", { ...plain, apart: (expert: number) => expert % 2 === 0 }],
      ["biases", { ...plain, biases: true }],
      ["a clamped activation", { ...plain, biases: true, activation: "clamped_swiglu" }],
      ["biases, gate and up apart", { ...plain, biases: true, apart: () => true }],
      ["experts that gate nothing", { ...plain, activation: "relu_squared", rule: { isGated: false } }],
      ["weights by the sigmoid, scaled", { ...plain, rule: { scoring: "sigmoid", weightScale: 2.5 } }],
      ["sigmoids as they are", { ...plain, softmaxOver: "all", rule: { scoring: "sigmoid" } }],
      [
        "a bias that only the choice sees",
        { ...plain, rule: { scoring: "sigmoid", selection: [3, 0, 0.1, -2, 0] } },
      ],
      ["a bias on a softmax", { ...plain, topK: 3, rule: { selection: [0.4, 0, 0.2, -2, 0] } }],
      ["a scale for each expert", { ...plain, rule: { scales: [0.5, -1, 2, 0, 1.5] } }],
      [
        "weights of what is read",
        { ...plain, softmaxOver: "all", rule: { scoring: "sigmoid", weighsInput: true } },
      ],
      [
        "weights of what is read, with biases, gate and up apart",
        { ...plain, biases: true, apart: () => true, rule: { weightScale: 0.5, weighsInput: true } },
      ],
      [
        "the best groups by their best expert",
        { ...six, rule: { groups: { count: 3, chosen: 2, by: "best" } } },
      ],
      [
        "the best groups by their best two, with a bias",
        {
          ...six,
          topK: 3,
          rule: {
            scoring: "sigmoid",
            selection: [0.5, 0.2, 0, -0.1, 0, 0.3],
            groups: { count: 2, chosen: 1, by: "two_best" },
          },
        },
      ],
    ] as const satisfies readonly (readonly [string, Mixture])[]) {
      test(name, async () => {
        using backend = open();
        const random = new SeededRandom(3);
        const { numExperts = fewExperts }: Mixture = mixture;
        const weights = randomWeights(random, mixture.innerSize, numExperts);
        // Scores rise towards the last expert, so that the experts' shares of the rows differ.
        const rows = Array.from({ length: 33 }, () =>
          Float32Array.of(
            ...random.floats(hiddenSize),
            ...random.floats(numExperts, 2).map((score, expert) => score + expert),
          ),
        );
        const out = await runMixture(backend, rows, weights, mixture);
        for (const [i, row] of rows.entries())
          assertClose(out[i] ?? [], expected(row, weights, mixture), 1e-5);
      });
    }

    test("a row's bits do not depend on the rows beside it", async () => {
      using backend = open();
      const random = new SeededRandom(4);
      const weights = randomWeights(random, 48);
      const rows = Array.from({ length: 300 }, () => random.floats(hiddenSize + fewExperts));
      const together = await runMixture(backend, rows, weights, plain);
      for (const index of [0, 1, 17, 299]) {
        const [alone] = await runMixture(backend, [rows[index] ?? []], weights, plain);
        assertSameBits(together[index], alone, `row ${index}`);
      }
    });

    test("equal scores go to the lower experts", async () => {
      using backend = open();
      const random = new SeededRandom(5);
      const weights = randomWeights(random, 48);
      const row = Float32Array.of(...random.floats(hiddenSize), 1, 2, 1, 1, 1);
      const [out] = await runMixture(backend, [row], weights, plain);
      const tilted = row.map((value, column) => value + (column === hiddenSize ? 1e-9 : 0));
      assertClose(out ?? [], expected(tilted, weights, plain), 1e-5);
    });

    test("sigmoid_gate scales each row by its own factor", async () => {
      using backend = open();
      const random = new SeededRandom(6);
      const rows = [-100, -2, 0, 0.5, 90].map((gate) => Float32Array.of(gate, ...random.floats(37)));
      const on = { buffer: 0, column: 1 };
      const ops: Op[] = [{ op: "sigmoid_gate", in: { buffer: 0, column: 0, width: 1 }, on }];
      const out = await runOps(backend, rows, { ops, result: 0 });
      for (const [i, row] of rows.entries()) {
        const factor = 1 / (1 + Math.exp(-(row[0] ?? 0)));
        const scaled = Array.from(row.subarray(1), (value) => value * factor);
        assertClose(out[i]?.subarray(1) ?? [], scaled, 1e-6);
      }
    });

    test("programs whose experts do not fit are refused", async () => {
      using backend = open();
      const random = new SeededRandom(7);
      const [first] = await realize(backend, randomWeights(random, 16), { ...plain, innerSize: 16 });
      assert.ok(first !== undefined);
      const base = {
        op: "experts",
        in: { buffer: 0 },
        scores: { buffer: 0, column: 0, width: 2 },
        out: { buffer: 1 },
        experts: [first, first],
        topK: 1,
        softmaxOver: "chosen",
        activation: "silu",
      } as const;
      const table = await matrix(backend, 4, hiddenSize, new Float32Array(4 * hiddenSize));
      for (const [message, change] of [
        [/chooses 3 of 2 experts/, { topK: 3 }],
        [/topK to be a positive integer/, { topK: 0 }],
        [/width of scores is 3, the experts are 2/, { scores: { buffer: 0, column: 0, width: 3 } }],
        [/rows of expert 1's gate/, { experts: [first, { ...first, gate: first.down }] }],
        [/rows of expert 1's gate is 32/, { experts: [first, { ...first, up: first.gate }] }],
        [/expert 0's gate/, { in: { buffer: 0, column: 0, width: 8 } }],
        [/a bias of expert 0/, { experts: [{ ...first, downBias: vector(backend, [1]) }, first] }],
        [/rows of expert 0's gate/, { isGated: false }],
        [/knows no scoring tanh/, { scoring: "tanh" }],
        [/the selection bias is 1, the experts are 2/, { selectionBias: vector(backend, [1]) }],
        [/the number of scales is 3, the experts are 2/, { expertScales: vector(backend, [1, 2, 3]) }],
        [/scales its weights by NaN/, { weightScale: NaN }],
        [/has 2 experts in 3 groups/, { groups: { count: 3, chosen: 1, by: "best" } }],
        [/chooses 2 experts of 1 of 2 groups/, { topK: 2, groups: { count: 2, chosen: 1, by: "best" } }],
        [/cannot choose groups by mean/, { groups: { count: 2, chosen: 1, by: "mean" } }],
        [/knows no activation/, { activation: "softmax" }],
        [/apart/, { out: { buffer: 0 } }],
      ] as const) {
        const op = { ...base, ...change } as Op;
        assert.throws(
          () =>
            backend.compile({
              buffers: [hiddenSize, hiddenSize],
              ops: [{ op: "embedding", weight: table, out: { buffer: 0 } }, op],
              hidden: { buffer: 0 },
              head: { weight: table },
              maxTokens: 4,
            }),
          { code: "internal_error", message },
        );
      }
    });
  });
}

interface FloatWeights {
  readonly gateUp: Float32Array;
  readonly down: Float32Array;
  readonly gateUpBias: Float32Array;
  readonly downBias: Float32Array;
}

function randomWeights(random: SeededRandom, innerSize: number, numExperts = fewExperts): FloatWeights[] {
  return Array.from({ length: numExperts }, () => ({
    gateUp: random.floats(2 * innerSize * hiddenSize, 0.3),
    down: random.floats(innerSize * hiddenSize, 0.3),
    gateUpBias: random.floats(2 * innerSize),
    downBias: random.floats(hiddenSize),
  }));
}

async function realize(
  backend: Backend,
  weights: readonly FloatWeights[],
  mixture: Mixture,
): Promise<ExpertWeights[]> {
  const { innerSize, biases, rule } = mixture;
  const bias = (values: Float32Array): Vector => vector(backend, values);
  const wide = (rows: number, values: Float32Array): Promise<Matrix> =>
    matrix(backend, rows, hiddenSize, values);
  const experts: ExpertWeights[] = [];
  for (const [index, { gateUp, down, gateUpBias, downBias }] of weights.entries()) {
    const half = innerSize * hiddenSize;
    const isApart = mixture.apart(index);
    experts.push({
      gate:
        isApart || rule?.isGated === false
          ? await wide(innerSize, gateUp.subarray(0, half))
          : await wide(2 * innerSize, gateUp),
      ...(isApart && { up: await wide(innerSize, gateUp.subarray(half)) }),
      down: await matrix(backend, hiddenSize, innerSize, down),
      ...(biases && {
        gateBias: bias(isApart ? gateUpBias.subarray(0, innerSize) : gateUpBias),
        ...(isApart && { upBias: bias(gateUpBias.subarray(innerSize)) }),
        downBias: bias(downBias),
      }),
    });
  }
  return experts;
}

async function runMixture(
  backend: Backend,
  rows: readonly ArrayLike<number>[],
  weights: readonly FloatWeights[],
  mixture: Mixture,
): Promise<Float32Array[]> {
  const { topK, softmaxOver, activation } = mixture;
  const { selection, scales, ...rule } = mixture.rule ?? {};
  const routing = {
    ...rule,
    ...(selection !== undefined && { selectionBias: vector(backend, selection) }),
    ...(scales !== undefined && { expertScales: vector(backend, scales) }),
  };
  const experts = await realize(backend, weights, mixture);
  const input = { buffer: 0, column: 0, width: hiddenSize };
  const scores = { buffer: 0, column: hiddenSize };
  return runOps(backend, rows, {
    buffers: [hiddenSize],
    ops: [
      {
        op: "experts",
        in: input,
        scores,
        out: { buffer: 1 },
        experts,
        topK,
        softmaxOver,
        activation,
        ...routing,
      },
    ],
    result: 1,
  });
}

/** In double precision. */
function expected(row: Float32Array, weights: readonly FloatWeights[], mixture: Mixture): number[] {
  const scores = Array.from(row.subarray(hiddenSize));
  const { topK, softmaxOver, rule } = mixture;
  const routed = routeToExperts(scores, { topK, softmaxOver, ...rule }, rule?.selection);
  const sum = Array.from({ length: hiddenSize }, () => 0);
  for (const [expert, share] of routed) {
    const factor = share * (rule?.scales?.[expert] ?? 1);
    const [read, weight] = rule?.weighsInput === true ? [factor, 1] : [1, factor];
    const input = Array.from(row.subarray(0, hiddenSize), (value) => read * value);
    const output = runExpert(input, weights[expert], mixture);
    for (const [column, value] of output.entries()) sum[column] = (sum[column] ?? 0) + weight * value;
  }
  return sum;
}

function runExpert(input: readonly number[], weights: FloatWeights | undefined, mixture: Mixture): number[] {
  if (weights === undefined) return [];
  const { innerSize, biases } = mixture;
  const product = (values: Float32Array, x: ArrayLike<number>, out: number, bias: Float32Array): number => {
    let sum = biases ? (bias[out] ?? 0) : 0;
    for (let i = 0; i < x.length; i++) sum += (values[out * x.length + i] ?? 0) * (x[i] ?? 0);
    return sum;
  };
  const activated = Array.from({ length: innerSize }, (_, i) => {
    const gate = product(weights.gateUp, input, i, weights.gateUpBias);
    const up = product(weights.gateUp, input, innerSize + i, weights.gateUpBias);
    return activateGated(mixture.activation, gate, mixture.rule?.isGated === false ? 1 : up);
  });
  return Array.from({ length: hiddenSize }, (_, i) => product(weights.down, activated, i, weights.downBias));
}
