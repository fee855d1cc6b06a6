import assert from "node:assert/strict";
import { test } from "node:test";
import { styleFor } from "./style.js";

test("colours on a terminal, none elsewhere or with NO_COLOR", () => {
  const before = process.env["NO_COLOR"];
  try {
    delete process.env["NO_COLOR"];
    assert.equal(styleFor({ isTTY: true }).bad("x"), "\u001b[31mx\u001b[39m");
    assert.equal(styleFor({ isTTY: false }).bad("x"), "x");
    assert.equal(styleFor({}).bad("x"), "x");
    process.env["NO_COLOR"] = "1";
    assert.equal(styleFor({ isTTY: true }).bad("x"), "x");
  } finally {
    if (before === undefined) delete process.env["NO_COLOR"];
    else process.env["NO_COLOR"] = before;
  }
});
