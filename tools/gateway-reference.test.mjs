import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { gatewayPage, withSettings } from "./gateway-reference.mjs";

test("the reference of gateway.yaml lists its settings", () => {
  const page = readFileSync(gatewayPage, "utf8");
  assert.equal(page, withSettings(page), "run node tools/gateway-reference.mjs");
});
