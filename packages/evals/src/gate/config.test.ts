import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { type GateConfig, parseGateConfig } from "./config.js";

const vocabulary = {
  checkSettings(name: string, settings: unknown): void {
    if (
      typeof settings === "object" &&
      settings !== null &&
      "margin" in settings &&
      settings.margin === "much"
    )
      throw new OctavoError("invalid_option", `${name}.margin: expected a number`);
  },
  evaluatorNames: (specs: readonly unknown[], hasJudge: boolean): readonly string[] =>
    specs.map((spec) => {
      if (spec === "groundedness" && !hasJudge)
        throw new OctavoError("invalid_option", "groundedness needs a judge: configure one");
      return String(spec);
    }),
};

const read = (text: string): GateConfig => parseGateConfig("eval.yaml", text, vocabulary);

const whole = `version: 1
name: int4 release
targets:
  baseline: { base_url: "http://127.0.0.1:8001/v1" }
  candidate:
    base_url: http://127.0.0.1:8002/v1
    api_key_env: CANDIDATE_KEY
datasets:
  golden: { path: golden.jsonl, limit: 200 }
evaluators: [json_schema, exact_match]
checks:
  quantization: { margin: 0.02 }
  tail: { on_fail: warn }
health:
  latency:
    - p95(ttft_ms) <= 800
    - expect: ratio p95(ttft_ms) <= 1.25
      on_fail: warn
  quality:
    - pass_rate(json_schema) >= 0.97 with 95% confidence
when:
  paths: ["prompts/**"]
timeout: 30m
`;

test("a configuration is read with its checks and expectations", () => {
  const { file, checks, assertions } = read(whole);
  assert.equal(file.timeout, 1_800_000);
  assert.deepEqual(checks, [
    { name: "quantization", settings: { margin: 0.02 }, onFail: "error" },
    { name: "tail", settings: {}, onFail: "warn" },
  ]);
  assert.deepEqual(
    assertions.map(({ dimension, onFail, expectation }) => [dimension, onFail, expectation.text]),
    [
      ["latency", "error", "p95(ttft_ms) <= 800"],
      ["latency", "warn", "ratio p95(ttft_ms) <= 1.25"],
      ["quality", "error", "pass_rate(json_schema) >= 0.97 with 95% confidence"],
    ],
  );
});

test("a mistake is named with its line and path", () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ["name: int4 release", "nam: int4 release", /^eval\.yaml:2:6: nam: there is no such setting$/],
    ["version: 1", "version: 2", /^eval\.yaml:1:10: version:/],
    ["limit: 200", "limit: 0", /^eval\.yaml:9:40: datasets\.golden\.limit:/],
    [
      "api_key_env: CANDIDATE_KEY",
      "api_key_env: sk-123",
      /^eval\.yaml:7:18: targets\.candidate\.api_key_env: expected the name of an environment variable/,
    ],
    [
      "api_key_env: CANDIDATE_KEY",
      "api_key: sk-123",
      /^eval\.yaml:7:14: targets\.candidate\.api_key: there is no such setting/,
    ],
    [
      "margin: 0.02",
      "margin: much",
      /^eval\.yaml:12:17: checks\.quantization: quantization\.margin: expected a number/,
    ],
    ["tail: { on_fail: warn }", "tale: {}", /checks/],
    [
      "on_fail: warn }",
      "on_fail: skip }",
      /^eval\.yaml:13:20: checks\.tail\.on_fail: expected error or warn/,
    ],
    [
      "p95(ttft_ms) <= 800",
      "p95(ttft) <= 800",
      /^eval\.yaml:16:7: health\.latency\[0\]: `p95\(ttft\) <= 800` is about quality/,
    ],
    [
      "p95(ttft_ms) <= 800",
      "p95(ttft_ms) 800",
      /^eval\.yaml:16:7: health\.latency\[0\]: .*expected <= or >=/,
    ],
    [
      "pass_rate(json_schema)",
      "pass_rate(bleu)",
      /^eval\.yaml:20:7: health\.quality\[0\]: .*evaluators has no bleu; it has json_schema, exact_match/,
    ],
    [
      "[json_schema, exact_match]",
      "[groundedness]",
      /^eval\.yaml:10:13: evaluators: groundedness needs a judge/,
    ],
    ["timeout: 30m", "timeout: soon", /^eval\.yaml:23:10: timeout: expected a time/],
    ["  baseline: {", "  spare: {", /^eval\.yaml:4:10: targets\.spare: there is no such setting/],
    [
      '  baseline: { base_url: "http://127.0.0.1:8001/v1" }\n',
      "",
      /health\.latency\[1\]: .*compares: name targets\.baseline/,
    ],
    ["version: 1", "version: [1", /^eval\.yaml:\d+:\d+: /],
    ["version: 1", "version: 1\nversion: 1", /^eval\.yaml:2:1: .*unique/],
  ];
  for (const [from, to, message] of cases) {
    const text = whole.replace(from, to);
    assert.notEqual(text, whole);
    assert.throws(
      () => read(text),
      (thrown) => {
        assert.ok(thrown instanceof OctavoError);
        assert.equal(thrown.code, "invalid_option");
        assert.match(thrown.message, message);
        return true;
      },
      to,
    );
  }
});

test("a file that asserts nothing, is nothing, or grows without end is refused", () => {
  for (const text of [
    "",
    "[]",
    "version: 1\ntargets: {candidate: {base_url: http://x}}\n",
    `# ${"x".repeat(2 ** 20)}`,
  ])
    assert.throws(() => read(text), OctavoError);
  const bomb = [
    "a: &a [x,x,x,x,x,x,x,x,x]",
    ...Array.from({ length: 8 }, (_, index) => {
      const before = String.fromCodePoint(97 + index);
      const name = String.fromCodePoint(98 + index);
      return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(",")}]`;
    }),
  ].join("\n");
  assert.throws(() => read(bomb), OctavoError);
});
