import assert from "node:assert/strict";
import { test } from "node:test";
import type { Matrix, Op, ProgramSpec } from "@octavo/kernels";
import { multiplyAddsOf, readShareOf } from "./program-costs.js";

const matrix = (rows: number, cols: number): Matrix =>
  ({ kind: "matrix", rows, cols, byteLength: 2 * rows * cols }) as unknown as Matrix;
const [a, b] = [{ buffer: 0 }, { buffer: 1 }];

function programOf(ops: readonly Op[], head: Matrix): ProgramSpec {
  return { buffers: [10, 10], ops, hidden: b, head: { weight: head }, maxTokens: 1 };
}

test("a table that is only looked up is not read, one that the head shares is", () => {
  const [table, weight, head] = [matrix(30, 10), matrix(10, 10), matrix(30, 10)];
  const ops = (of: Matrix): Op[] => [
    { op: "embedding", weight: of, out: a },
    { op: "linear", in: a, weight, out: b },
  ];
  assert.equal(multiplyAddsOf(programOf(ops(table), head)), 100);
  assert.equal(readShareOf(programOf(ops(table), head), 1), 40 / 70);
  assert.equal(readShareOf(programOf(ops(head), head), 1), 1);
});

test("of a mixture, a step reads the experts that its tokens can choose", () => {
  const experts = Array.from({ length: 8 }, () => ({ gate: matrix(20, 10), down: matrix(10, 10) }));
  const mixture = { op: "experts", in: a, scores: a, out: b, experts, topK: 2 } as unknown as Op;
  const program = programOf([mixture], matrix(10, 10));
  assert.equal(multiplyAddsOf(program), 600);
  assert.equal(readShareOf(program, 1), (600 + 100) / (2400 + 100));
  assert.equal(readShareOf(program, 3), (1800 + 100) / (2400 + 100));
  assert.equal(readShareOf(program, 32), 1);
});
