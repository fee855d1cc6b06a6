import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import {
  childContext,
  formatTraceParent,
  isSampledByRatio,
  newTraceId,
  parseTraceContext,
} from "./trace-context.js";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const valid = `00-${traceId}-${spanId}-01`;

describe("W3C trace context", () => {
  it("reads what it writes", () => {
    const context = parseTraceContext(valid, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    assert.deepEqual(context, {
      traceId,
      spanId,
      isSampled: true,
      traceState: "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
    });
    assert.equal(formatTraceParent({ traceId, spanId, isSampled: false }), `00-${traceId}-${spanId}-00`);
  });

  it("takes versions to come by their known part", () => {
    assert.equal(parseTraceContext(`01-${traceId}-${spanId}-03-more`)?.isSampled, true);
    assert.equal(parseTraceContext(`01-${traceId}-${spanId}-02`)?.isSampled, false);
  });

  for (const [what, header] of [
    ["nothing", undefined],
    ["a list", [valid, valid]],
    ["a joined pair of headers", `${valid}, ${valid}`],
    ["capitals", valid.toUpperCase()],
    ["version ff", `ff-${traceId}-${spanId}-01`],
    ["version 00 with more", `${valid}-more`],
    ["a zero trace", `00-${"0".repeat(32)}-${spanId}-01`],
    ["a zero span", `00-${traceId}-${"0".repeat(16)}-01`],
    ["a short trace", `00-${traceId.slice(1)}-${spanId}-01`],
    ["a long header", `01-${traceId}-${spanId}-01-${"x".repeat(10_000)}`],
    ["a script", "<script>alert(1)</script>"],
  ] as const) {
    it(`ignores ${what}`, () => assert.equal(parseTraceContext(header), undefined));
  }

  it("drops a malformed tracestate alone", () => {
    for (const state of ["no-equals", "a=b=c,", "UPPER=1", `${"k=v,".repeat(200)}k=v`, "k=\u0007", 12]) {
      const context = parseTraceContext(valid, state);
      assert.equal(context?.traceId, traceId, String(state));
      assert.equal(context?.traceState, undefined, String(state));
    }
  });

  it("takes anything for an answer, never throws", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (parent, state) => {
        const context = parseTraceContext(parent, state);
        if (context !== undefined) assert.match(context.traceId, /^[0-9a-f]{32}$/);
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it("continues a trace with its decision, and begins one by the ratio", () => {
    const parent = parseTraceContext(`00-${traceId}-${spanId}-00`);
    const child = childContext(parent, 1);
    assert.equal(child.traceId, traceId);
    assert.notEqual(child.spanId, spanId);
    assert.equal(child.isSampled, false);
    assert.equal(childContext(undefined, 1).isSampled, true);
    assert.equal(childContext(undefined, 0).isSampled, false);
    assert.equal(isSampledByRatio(`${"0".repeat(24)}7fffffff`, 0.5), true);
    assert.equal(isSampledByRatio(`${"0".repeat(24)}80000000`, 0.5), false);
    assert.equal(new Set(Array.from({ length: 2000 }, newTraceId)).size, 2000);
  });
});
