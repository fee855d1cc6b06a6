import assert from "node:assert/strict";
import test from "node:test";
import { hostileText, sampleCheck, sampleReport } from "../report/testing/sample-report.js";
import { renderJunit } from "./junit.js";
import { renderMarkdown } from "./markdown.js";

const hostile = sampleReport({
  name: hostileText,
  warnings: [`${hostileText} @everyone https://evil.example`],
  checks: [sampleCheck("quantization", "fail", `${hostileText} | [x](https://evil.example) @maintainer`)],
});

test("JUnit counts failures, undecided and warned apart", () => {
  const xml = renderJunit(sampleReport());
  assert.match(
    xml,
    /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites name="[^"]+" tests="13" failures="4" errors="3" skipped="1" time="184\.000">/,
  );
  assert.match(
    xml,
    /<testsuite name="health\.quality" tests="1" failures="1" errors="0" skipped="0" timestamp="2026-11-21T10:00:00">/,
  );
  assert.match(
    xml,
    /<testcase classname="checks" name="fairness">\n {6}<error message="[^"]+" type="inconclusive">/,
  );
  assert.match(xml, /<testcase classname="health\.latency" name="p95\(ttft_ms\) &lt;= 800"\/>/);
  const broken = renderJunit(
    sampleReport({
      checks: [],
      gate: { name: "g", outcome: "judge_broken", exitCode: 8, summary: "the judge is down", items: [] },
    }),
  );
  assert.match(
    broken,
    /<testcase classname="run" name="judge_broken">\n {6}<error message="the judge is down"/,
  );
});

test("JUnit of hostile text is XML", () => {
  const xml = renderJunit(hostile);
  assert.doesNotMatch(xml, /<script|<img|(?![\n])\p{Cc}/u);
  const withoutTags = xml.replaceAll(/<\/?[a-z]+(?: [a-z]+="[^"<]*")*\/?>/g, "").replace(/^<\?xml.*\?>/, "");
  assert.doesNotMatch(withoutTags, /[<>]/);
  assert.doesNotMatch(withoutTags, /&(?!amp;|lt;|gt;|quot;|#39;|#10;|#13;)/);
});

test("a pull request's comment says the verdict first and mentions nobody", () => {
  const comment = renderMarkdown(sampleReport());
  assert.match(comment, /^### \u274c fail: octavo-mini in 4 bits against bf16\n/);
  assert.match(
    comment,
    /\| `pass_rate\(json_schema\) >= 0\.97` \| \u274c fail \| 91 % \| 88 % to 94 % \| 190 \|/,
  );
  const rude = renderMarkdown(hostile);
  assert.doesNotMatch(rude, /@everyone|@maintainer|\]\(https?:\/\//);
  assert.doesNotMatch(rude, /(?<!\\)<(?!=|sub|\/sub|details|\/details|summary|\/summary)/);
  for (const line of rude.split("\n").filter((row) => row.startsWith("| quantization")))
    assert.equal(line.replaceAll("\\|", "").split("|").length, 5);
});

test("characters that reorder or hide text show, in JUnit and in comments", () => {
  const report = sampleReport({ checks: [sampleCheck("tail", "fail", "a\u202eb\u200bc\u2066d")] });
  for (const rendered of [renderJunit(report), renderMarkdown(report)]) {
    assert.doesNotMatch(rendered, /[\u202e\u2066]/);
    assert.match(rendered, /U\\?\+202E/);
  }
});

test("a comment stays below what GitHub takes", () => {
  const checks = Array.from({ length: 200 }, () => sampleCheck("tail", "fail", "x".repeat(1000)));
  assert.ok(renderMarkdown(sampleReport({ checks })).length < 65_536);
});
