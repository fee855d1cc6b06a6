import assert from "node:assert/strict";
import test from "node:test";
import { linearAxis, logAxis } from "./axis.js";
import type { Chart } from "./chart.js";
import { drawChart } from "./draw-chart.js";
import { histogram } from "./histogram.js";
import { intervalChart } from "./interval-chart.js";
import { renderPage } from "../page.js";
import { noChromium, smallScreenProblems } from "../testing/small-screen.js";

test("axes run from round number to round number, in either direction", () => {
  const axis = linearAxis([0.13, 0.87, Number.NaN], { start: 100, end: 0 });
  assert.deepEqual(axis.ticks, [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual([axis.place(0), axis.place(0.5), axis.place(9)], [100, 50, 0]);
  const powers = logAxis([0, 0.002, 5], { start: 0, end: 100 });
  assert.deepEqual(powers.ticks, [0.001, 0.01, 0.1, 1, 10]);
  assert.deepEqual([powers.place(0), powers.place(0.1), powers.place(10)], [0, 50, 100]);
  assert.deepEqual(logAxis([0], { start: 0, end: 1 }).ticks, [1, 10]);
});

test("rows of an interval chart say their figures, with and without an interval, margin or verdict", () => {
  const html = intervalChart({
    title: "by <role>",
    unit: "share",
    rows: [
      { label: "prose", estimate: 0.25, interval: [0.2, 0.3], margin: 0.5, verdict: "pass" },
      { label: "key", estimate: 0.1, interval: undefined },
    ],
  });
  assert.match(html, /aria-label="prose: 25 %, interval 20 % to 30 %, margin 50 %, pass"/);
  assert.match(html, /aria-label="key: 10 %, no interval"/);
  assert.match(html, /by &lt;role&gt;/);
  // a wide drawing and a narrow one
  assert.equal(html.match(/class="interval"/g)?.length, 2);
});

test("bars of a histogram say their counts and shares", () => {
  const html = histogram({
    title: "sizes",
    xLabel: "nats",
    counted: "tokens",
    bars: [
      { label: "small", tick: "< 1", count: 3 },
      { label: "large", tick: "1", count: 0 },
    ],
  });
  assert.match(html, /aria-label="small: 3 tokens, 100 %"/);
  assert.match(html, /aria-label="large: 0 tokens, 0 %"/);
  assert.doesNotMatch(html, /NaN/);
});

test(
  "every kind of chart has a drawing for small screens, whatever its figures' length",
  { skip: noChromium },
  async () => {
    const counts = [12_000, 10, 300, 820, 810, 0, 1, 80, 40, 3];
    const bars = counts.map((count, index) => ({ label: `bin ${index}`, tick: `< 1e-${index}`, count }));
    const steps = Array.from({ length: 200 }, (_, index) => ({
      startMs: 90 * index,
      durationMs: 80,
      prefillTokens: index === 100 ? 123_456 : 0,
      decodeTokens: 32,
      isBlamed: index === 100,
      label: `step ${index}`,
    }));
    const charts: readonly Chart[] = [
      {
        kind: "series",
        title: "lengths",
        xLabel: "s since the first token",
        yLabel: "tokens",
        lines: [
          {
            label: "a",
            points: [
              [0, 123_456.7],
              [1_234_567, 1.5],
            ],
          },
        ],
        spans: [{ label: "a burst of requests of another tenant", from: 900_000, to: 1_100_000 }],
        threshold: 50_000,
      },
      { kind: "steps", title: "steps", steps },
      {
        kind: "intervals",
        title: "rates",
        unit: "share",
        rows: [
          {
            label: "a name that goes on and on",
            estimate: 0.123,
            interval: [0.1, 0.2],
            margin: 0.9,
            verdict: "fail",
          },
        ],
      },
    ];
    const html = renderPage({
      title: "charts",
      skip: "to the charts",
      body: [
        "<main>",
        histogram({ title: "sizes", xLabel: "KL of a token, nats", counted: "tokens", bars }),
        ...charts.map(drawChart),
        "</main>",
      ],
    });
    assert.deepEqual(await smallScreenProblems(html), []);
    // charts for wide screens do not fit
    const wide = html.replaceAll('class="wide"', 'class="narrow"');
    assert.ok((await smallScreenProblems(wide)).some((problem) => problem.startsWith("shrunk")));
  },
);
