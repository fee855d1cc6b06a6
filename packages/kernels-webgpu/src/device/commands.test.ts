import assert from "node:assert/strict";
import { test } from "node:test";
import type { Commands } from "./commands.js";
import { openTestGpu } from "../testing/software-gpu.js";

const gpu = await openTestGpu();
const skip =
  typeof gpu === "string"
    ? gpu
    : gpu.hasTimestamps
      ? false
      : "the adapter has no timestamps (timestamp-query)";

test("more runs of ops than a query set holds are all timed, step after step", { skip }, async () => {
  if (typeof gpu === "string") return;
  // A pass takes two queries of 4,096.
  for (const numPairs of [2500, 1, 2100]) {
    gpu.commands(true).pass("never submitted");
    const commands: Commands = gpu.commands(true);
    for (let pair = 0; pair < numPairs; pair++) {
      commands.pass("linear");
      commands.pass("linear");
      commands.pass("attention");
    }
    commands.endPass();
    const read = commands.endTimes();
    gpu.submit(commands);
    const times = (await read?.()) ?? [];
    assert.deepEqual(
      times.map(({ op, count }) => [op, count]),
      [
        ["linear", 2 * numPairs],
        ["attention", numPairs],
      ],
    );
    assert.ok(times.every(({ milliseconds }) => Number.isFinite(milliseconds) && milliseconds >= 0));
  }
  await gpu.settled();
});

test("without a wish for times, all dispatches share a pass and nothing is read", { skip }, () => {
  if (typeof gpu === "string") return;
  const commands = gpu.commands();
  assert.equal(commands.pass("linear"), commands.pass("attention"));
  commands.endPass();
  assert.equal(commands.endTimes(), undefined);
});
