import { isCapable } from "@octavo/artifacts/hub/progress-bar";
import assert from "node:assert/strict";
import { test } from "node:test";
import { styleFor } from "./style.js";

test("colours on a terminal, none elsewhere, on a dumb one or with NO_COLOR", (t) => {
  const before = process.env["NO_COLOR"];
  const { TERM } = process.env;
  t.after(() => {
    if (TERM === undefined) delete process.env["TERM"];
    else process.env["TERM"] = TERM;
  });
  try {
    delete process.env["NO_COLOR"];
    process.env["TERM"] = "xterm";
    assert.equal(styleFor({ isTTY: true }).bad("x"), "\u001b[31mx\u001b[39m");
    assert.equal(styleFor({ isTTY: false }).bad("x"), "x");
    assert.equal(styleFor({}).bad("x"), "x");
    process.env["TERM"] = "dumb";
    assert.equal(styleFor({ isTTY: true }).bad("x"), "x");
    assert.equal(isCapable({ isTTY: true }), false);
    process.env["TERM"] = "xterm";
    process.env["NO_COLOR"] = "1";
    assert.equal(styleFor({ isTTY: true }).bad("x"), "x");
  } finally {
    if (before === undefined) delete process.env["NO_COLOR"];
    else process.env["NO_COLOR"] = before;
  }
});
