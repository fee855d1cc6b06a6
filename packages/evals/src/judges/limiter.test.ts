import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Limiter } from "./limiter.js";

test("many that wait with the run's signal are no leak, and leave with it", async (context) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on("warning", onWarning);
  context.after(() => process.off("warning", onWarning));
  const limiter = new Limiter(1);
  const run = new AbortController();
  const first = limiter.run(run.signal, () => sleep(20));
  const waiting = Array.from({ length: 14 }, () => limiter.run(run.signal, () => Promise.resolve()));
  const settled = Promise.allSettled(waiting);
  run.abort(new TypeError("the run ended"));
  await first;
  for (const result of await settled) assert.equal(result.status, "rejected");
  await sleep(5);
  assert.deepEqual(warnings, []);
});
