import assert from "node:assert/strict";
import { test } from "node:test";
import { checkNamed } from "../table.js";
import { observationsFromSpans } from "../../spans/from-spans.js";
import type { Observation } from "../observation.js";
import { unitScores } from "./unit-scores.js";

const spans = (condition: string, score: (index: number) => number): readonly Observation[] =>
  Array.from({ length: 40 }, (_, index) => index).flatMap((index) =>
    observationsFromSpans(
      {
        start_ms: 1000 * index,
        duration_ms: 100,
        span_id: `${condition}-${index}`,
        attributes: {
          "gen_ai.operation.name": "chat",
          "octavo.tenant.id": index % 2 === 0 ? "a" : "b",
          "octavo.replica.id": `r${index % 2}`,
          "octavo.queue_depth": 1,
          "gen_ai.usage.input_tokens": 100,
          "gen_ai.usage.output_tokens": 20,
          "octavo.case.id": `case-${index}`,
          "octavo.score.helpfulness": score(index),
          "octavo.score.exact": index % 2,
        },
      },
      { condition },
    ),
  );

test("leaves out an evaluator on another scale whole, and says so", () => {
  const { observations, notes } = unitScores(spans("shared", (index) => 1 + (index % 5)));
  assert.ok(observations.every(({ scores }) => scores["helpfulness"] === null));
  assert.equal(observations[1]?.scores["exact"], 1);
  assert.equal(notes.length, 1);
  assert.match(notes[0]!, /"helpfulness" are not from 0 to 1 \(2 to 5 among them\)/);
  const fine = spans("shared", () => 1);
  assert.deepEqual(unitScores(fine), { observations: fine, notes: [] });
});

test("every check judges spans with scores from 1 to 5", () => {
  for (const name of [
    "tail",
    "tenant-fairness",
    "autoscaling-lag",
    "traffic-drift",
    "replica-skew",
  ] as const) {
    const seen = ["idle", "scaling", "solo", "shared", "production", "evaluation", "candidate"].flatMap(
      (condition) => spans(condition, (index) => 1 + (index % 5)),
    );
    const { notes } = checkNamed(name).judge(seen, {});
    assert.ok(
      notes.some((note) => note.includes("none of them was judged")),
      name,
    );
  }
});
