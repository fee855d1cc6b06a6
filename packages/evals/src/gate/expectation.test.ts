import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { array, assert as check, constantFrom, property, string } from "fast-check";
import { dimensionOf, parseExpectation, unitOfMeasure } from "./expectation.js";

test("an expectation reads as it is said", () => {
  assert.deepEqual(parseExpectation(" pass_rate(json_schema) >= 97% with 99% confidence "), {
    text: "pass_rate(json_schema) >= 97% with 99% confidence",
    compare: "none",
    measure: { kind: "pass_rate", evaluator: "json_schema" },
    comparator: ">=",
    bound: 0.97,
    target: undefined,
    confidence: 0.99,
    byEstimate: false,
    method: undefined,
  });
  const ratio = parseExpectation("ratio p99.9(ttft_ms) <= 125% using bootstrap");
  assert.deepEqual(ratio.measure, {
    kind: "percentile",
    level: 0.9990000000000001,
    of: { kind: "request", metric: "ttft_ms" },
  });
  assert.deepEqual(
    [ratio.compare, ratio.bound, ratio.method, unitOfMeasure(ratio)],
    ["ratio", 1.25, "bootstrap", "ratio"],
  );
  const delta = parseExpectation("delta mean(bleu) >= -0.02 by estimate");
  assert.deepEqual([delta.byEstimate, delta.bound, dimensionOf(delta)], [true, -0.02, "quality"]);
  assert.equal(parseExpectation("median(duration_ms)<=1.5s on baseline").bound, 1500);
  assert.deepEqual(parseExpectation("error_rate(timeout) < 0.01").measure, {
    kind: "error_rate",
    code: "timeout",
  });
  assert.equal(dimensionOf(parseExpectation("throughput >= 100")), "throughput");
});

test("what cannot be meant is refused where it stands", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["", /at its end: expected a measure/],
    ["pass_rate >= 0.9", /at ">= 0.9": expected \(an evaluator\)/],
    ["pass_rate(json) >= 97", /between 0 and 1: did you mean 97%/],
    ["delta pass_rate(json) >= -2", /did you mean -2%/],
    ["pass_rate(json) == 1", /== decides nothing/],
    ["p0(ttft_ms) <= 1", /there is no measure p0/],
    ["p100(ttft_ms) <= 1", /there is no measure p100/],
    ["p95(ttft_ms) <= 800 ms", /at "ms": expected `on`/],
    ["throughput >= 5%", /a percentage of what/],
    ["pass_rate(json) >= 2s", /not a time/],
    ["pass_rate(json) >= 0.9 with 30% confidence", /between 50% and 100%/],
    ["pass_rate(json) >= 0.9 with 95% confidence by estimate", /either/],
    ["delta error_rate <= 0.01 on baseline", /leave out `on baseline`/],
    ["pass_rate(json) >= 0.9 using magic", /one of paired, welch, bootstrap/],
    ["pass_rate(json) >= 0.9; rm -rf", /cannot read "; rm -rf"/],
    [`pass_rate(${"x".repeat(400)}) >= 0.9`, /more than 300 characters/],
  ];
  for (const [text, message] of cases)
    assert.throws(
      () => parseExpectation(text),
      (thrown) =>
        thrown instanceof OctavoError && thrown.code === "invalid_option" && message.test(thrown.message),
      text,
    );
});

test("any text is an expectation or a clear refusal", () => {
  const words = constantFrom(
    "pass_rate",
    "(",
    ")",
    "delta",
    ">=",
    "0.9",
    "%",
    "with",
    "by",
    "estimate",
    "on",
    "x",
    " ",
  );
  const texts = array(words, { maxLength: 14 }).map((parts) => parts.join(" "));
  const never = (text: string): void => {
    try {
      parseExpectation(text);
    } catch (thrown) {
      assert.ok(thrown instanceof OctavoError && thrown.code === "invalid_option", String(thrown));
    }
  };
  check(property(texts, never));
  check(property(string({ maxLength: 60 }), never));
});
