import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { Breaker, type BreakerOptions } from "./breaker.js";

const options: BreakerOptions = { failures: 3, errorRate: 0.5, minCalls: 10, windowMs: 1000, openForMs: 500 };

function failing(breaker: Breaker, nowMs: number, count: number): void {
  for (let call = 0; call < count; call += 1) {
    breaker.begin(nowMs);
    breaker.fail(nowMs);
  }
}

describe("a circuit breaker", () => {
  it("opens after failures in a row, and a success between them starts the count again", () => {
    const breaker = new Breaker(options);
    failing(breaker, 0, 2);
    breaker.succeed(0);
    failing(breaker, 0, 2);
    assert.equal(breaker.state(0), "closed");
    failing(breaker, 0, 1);
    assert.equal(breaker.state(0), "open");
  });

  it("opens at an error rate, which forgets what is older than the window", () => {
    const breaker = new Breaker({ ...options, failures: 1000 });
    const mixed = (nowMs: number): void => {
      breaker.succeed(nowMs);
      breaker.fail(nowMs);
    };
    for (let call = 0; call < 4; call += 1) mixed(0);
    for (let call = 0; call < 8; call += 1) breaker.succeed(5000);
    breaker.fail(5000);
    assert.equal(breaker.state(5000), "closed", "the failures of 5 s ago do not count");
    for (let call = 0; call < 5; call += 1) breaker.fail(5000);
    assert.equal(breaker.state(5000), "closed", "6 of 14");
    breaker.fail(5000);
    breaker.fail(5000);
    assert.equal(breaker.state(5000), "open", "8 of 16");
  });

  it("lets one call through when half open: its success closes, its failure opens again, its cancellation lets another one", () => {
    const breaker = new Breaker(options);
    failing(breaker, 0, 3);
    assert.equal(breaker.begin(499), false);
    assert.equal(breaker.begin(500), true);
    assert.equal(breaker.begin(500), false, "a second call beside the probe");
    breaker.abandon();
    assert.equal(breaker.begin(501), true);
    breaker.fail(600);
    assert.equal(breaker.state(1099), "open");
    assert.equal(breaker.begin(1100), true);
    breaker.succeed(1200);
    assert.equal(breaker.state(1200), "closed");
    failing(breaker, 1200, 2);
    assert.equal(breaker.state(1200), "closed", "it starts over");
  });

  it("never lets two probes run at once, whatever happens", () => {
    const event = fc.record({ wait: fc.nat(400), kind: fc.constantFrom("begin", "ok", "fail", "abandon") });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (events) => {
        const breaker = new Breaker(options);
        let now = 0;
        let open = 0;
        let probes = 0;
        for (const { wait, kind } of events) {
          now += wait;
          if (kind === "begin") {
            const isProbe = breaker.state(now) !== "closed";
            if (!breaker.begin(now)) continue;
            open += 1;
            if (isProbe) probes += 1;
            assert.ok(probes <= 1, "two probes");
          } else if (open > 0) {
            open -= 1;
            if (kind === "ok") breaker.succeed(now);
            else if (kind === "fail") breaker.fail(now);
            else breaker.abandon();
            probes = 0;
          }
        }
      }),
      { seed: 3 },
    );
  });
});
