import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { dashboard, dashboardPath } from "./make-dashboard.mjs";

test("the dashboard is what its generator makes", () => {
  assert.deepEqual(JSON.parse(readFileSync(dashboardPath, "utf8")), dashboard());
});

test("panels lie side by side and do not overlap, with ids of their own", () => {
  const { panels } = dashboard();
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Set();
  for (const { gridPos, title } of panels) {
    assert.ok(Number.isInteger(gridPos.w) && gridPos.x + gridPos.w <= 24, title);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(!taken.has(`${x},${y}`), `${title} overlaps`);
        taken.add(`${x},${y}`);
      }
    }
  }
});
