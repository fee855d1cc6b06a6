import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import { renderReportHtml } from "./page.js";
import type { EvalReport } from "./report.js";
import { hostileText, sampleCase, sampleCheck, sampleReport } from "./testing/sample-report.js";

const page = (overrides: Partial<EvalReport> = {}): string => renderReportHtml(sampleReport(overrides));

test("the policy allows the page's own style and script and nothing else", () => {
  const html = page();
  const [, policy = ""] = /Content-Security-Policy" content="([^"]+)"/.exec(html) ?? [];
  const hash = (tag: string): string => {
    const [, text = ""] = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(html) ?? [];
    return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  };
  assert.equal(
    policy,
    `default-src 'none'; style-src ${hash("style")}; script-src ${hash("script")}; img-src data:; base-uri 'none'; form-action 'none'`,
  );
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.doesNotMatch(html, / style=|<link(?! rel="icon" href="data:,")|@import|url\(|src="/);
  assert.doesNotMatch(html.replaceAll(/<dd>.*?<\/dd>/g, ""), /https?:\/\//);
});

test("nothing that a model, a dataset or a server wrote is markup", () => {
  const html = page({
    name: hostileText,
    warnings: [hostileText],
    checks: [sampleCheck("quantization", "fail", hostileText)],
    cases: [sampleCase(0, hostileText), { ...sampleCase(1), caseId: hostileText, tags: [hostileText] }],
    targets: [{ name: hostileText, role: "candidate", url: hostileText, model: hostileText }],
    datasets: [{ name: hostileText }],
  });
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.doesNotMatch(html, /<img|onerror="/);
  assert.doesNotMatch(html, /(?![\t\n])\p{Cc}|[\u202a-\u202e]/u);
  assert.ok(html.includes("\u27e8U+202E\u27e9gnp.exe"));
  assert.equal(Buffer.from(html).toString(), html, "well-formed UTF-8");
});

test("every check shows its verdict, its figures, the rule of thumb and what to change", () => {
  const html = page();
  for (const { check, advice } of sampleReport().checks) {
    const at = html.indexOf(`id="check-${check}"`);
    const part = html.slice(at, html.indexOf("</section>", at));
    assert.match(part, /class="badge (pass|fail|inconclusive)"/);
    assert.match(part, /interval \u22126\.3 % to \u22122\.1 %, margin \u22122 %, fail/);
    assert.match(part, /as published; shown, never decisive/);
    assert.match(part, /1\.12\u00d7/);
    assert.equal(/What to change/.test(part), advice.length > 0);
    assert.match(part, /class="row step blamed"/);
    assert.match(part, /<td class="h8"><b>93<\/b>/);
  }
  assert.match(html, /<h1>Do not ship<\/h1>/);
});

test("a case without a baseline is passing or failing, never unchanged", () => {
  const cases = Array.from({ length: 20 }, (_, index) => {
    const { answers, ...row } = sampleCase(index);
    const { candidate } = answers;
    return { ...row, answers: candidate === undefined ? {} : { candidate } };
  });
  const html = page({ cases, numCases: 20 });
  const states = [...html.matchAll(/<details data-state="(\w+)"/g)].map(([, state]) => state);
  assert.deepEqual([...new Set(states)], ["failing", "passing"]);
  assert.doesNotMatch(html, /unchanged/);
});

test("cases are worst first, differ by marked words, and are bounded in number, text and bytes", () => {
  const cases = Array.from({ length: 60 }, (_, index) =>
    sampleCase(index, index === 3 ? "x".repeat(100_000) : ""),
  );
  const html = page({ cases, numCases: 5000 });
  const states = [...html.matchAll(/<details data-state="(\w+)"/g)].map(([, state]) => state);
  assert.equal(states.length, 60);
  assert.deepEqual([...new Set(states)], ["regressed", "failing", "improved", "same"]);
  assert.match(html, /<del>6|DQD-<del>7\d+<\/del><ins>6\d+<\/ins>/);
  assert.match(html, /The 60 cases most worth seeing of 5,000/);
  assert.ok(html.length < 2_000_000);
  const small = renderReportHtml(sampleReport({ cases, numCases: 60 }), { maxCaseBytes: 10_000 });
  assert.ok(small.length < page({ cases: [] }).length + 20_000);
});

test("how judges came to their verdicts is shown: by place, and by the stage that decided", () => {
  const html = page();
  assert.match(
    html,
    /<td class="number">16 % \(11 % to 22 %\)<\/td><td class="number">70 % \(51 % to 84 %\)/,
  );
  assert.match(html, /1:contains 12, 2:is_helpful 141, 3:is_helpful 37/);
  assert.match(html, /94\.1 % \(73 % to 99 %\)/);
  const { comparisons: _, cascades: __, ...older } = sampleReport({ calibrations: [] });
  assert.doesNotMatch(renderReportHtml(older), /id="judges"|href="#judges"/);
});

test("an empty run, one that decided nothing, and figures without a number are pages too", () => {
  const empty = page({
    checks: [],
    cases: [],
    evaluators: [],
    calibrations: [],
    comparisons: [],
    cascades: [],
    gate: undefined,
    numCases: 0,
  });
  assert.match(empty, /<h1>Measured<\/h1>/);
  assert.doesNotMatch(empty, /NaN|undefined|Infinity/);
  const odd = sampleCheck("tail", "inconclusive");
  const html = page({
    checks: [
      {
        ...odd,
        hypotheses: [
          {
            ...odd.hypotheses[0]!,
            estimate: Number.NaN,
            interval: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
          },
        ],
        figures: [
          {
            kind: "series",
            title: "none",
            xLabel: "s",
            yLabel: "ms",
            lines: [{ label: "empty", points: [] }],
          },
          {
            kind: "series",
            title: "one",
            xLabel: "s",
            yLabel: "ms",
            lines: [
              {
                label: "one",
                points: [
                  [1, Number.NaN],
                  [2, 3],
                ],
              },
            ],
          },
          { kind: "steps", title: "no steps", steps: [] },
          { kind: "heatmap", title: "void", xLabel: "x", yLabel: "y", x: ["a"], y: ["b"], cells: [] },
          { kind: "intervals", title: "none", unit: "ms", rows: [] },
        ],
      },
    ],
  });
  assert.doesNotMatch(html, /NaN|="[^"]*Infinity/);
});
