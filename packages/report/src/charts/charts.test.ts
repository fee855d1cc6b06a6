import assert from "node:assert/strict";
import test from "node:test";
import { linearAxis, logAxis } from "./axis.js";
import { histogram } from "./histogram.js";
import { intervalChart } from "./interval-chart.js";

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
