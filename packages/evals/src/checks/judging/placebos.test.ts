import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "@octavo/statistics";
import { checkNamed } from "../table.js";
import { observation } from "../testing/observation.js";
import { shufflePlaces } from "./placebos.js";

test("one digest that really differs fails the check and not its A/A", () => {
  const seen = Array.from({ length: 100 }, (_, index) =>
    [0, 1, 2].map((replica) =>
      observation({
        caseId: `case-${index}`,
        condition: "replica",
        replica: `r${replica}`,
        scores: { exact: 1 },
        output: "a",
        logitsDigest: replica === 1 && index === 0 ? "x" : "d",
      }),
    ),
  ).flat();
  const row = checkNamed("replica-skew");
  assert.equal(row.judge(seen, {}).verdict, "fail");
  assert.deepEqual(row.falseAlarms(seen, {}, { runs: 20, seed: 1 })?.failed, 0);
});

test("places of whole answers are dealt by chance, their scores are not", () => {
  const seen = Array.from({ length: 50 }, (_, index) =>
    observation({
      caseId: `case-${index}`,
      promptTokens: index,
      completionTokens: 1000 + index,
      scores: { exact: index % 2 },
    }),
  );
  const dealt = shufflePlaces(seen, new Random(1));
  assert.deepEqual(
    dealt.map(({ scores }) => scores),
    seen.map(({ scores }) => scores),
  );
  const lengths = dealt.map(({ completionTokens }) => completionTokens!);
  assert.notDeepEqual(
    lengths,
    seen.map(({ completionTokens }) => completionTokens),
  );
  assert.deepEqual(
    lengths.toSorted((a, b) => a - b),
    seen.map(({ completionTokens }) => completionTokens),
  );
});
