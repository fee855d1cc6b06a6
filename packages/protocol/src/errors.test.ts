import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { toErrorBody } from "./error-body.js";
import { errorCodes, OctavoError } from "./errors.js";

const page = readFileSync(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8");

describe("the reference page of errors", () => {
  it("lists every code with its status, type and retry, and no others", () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| (\d+) \| `(\w+)` \| (yes|no) \| (.+) \|$/gm)];
    const documented = rows.map(([, code, status, type, retry]) => [code, Number(status), type, retry]);
    const actual = Object.entries(errorCodes).map(([code, { status, type, retryable }]) => [
      code,
      status,
      type,
      retryable ? "yes" : "no",
    ]);
    const byCode = (a: (typeof actual)[number], b: (typeof actual)[number]): number =>
      String(a[0]).localeCompare(String(b[0]));
    assert.deepEqual(
      documented.toSorted(byCode as (a: unknown, b: unknown) => number),
      actual.toSorted(byCode),
    );
  });
});

describe("OctavoError", () => {
  it("carries its traits and makes vLLM's body", () => {
    const cause = new RangeError("x");
    const error = new OctavoError("queue_full", "64 wait", { param: "n", cause, retryAfterSeconds: 2 });
    assert.deepEqual(
      [error.status, error.type, error.retryable, error.retryAfterSeconds],
      [429, "RateLimitError", true, 2],
    );
    assert.equal(error.cause, cause);
    assert.deepEqual(toErrorBody(error), {
      error: { message: "64 wait", type: "RateLimitError", param: "n", code: 429 },
    });
    assert.equal(toErrorBody(new OctavoError("not_found", "x")).error.param, null);
  });

  it("wraps what is not one", () => {
    const error = new OctavoError("not_found", "x");
    assert.equal(OctavoError.from(error), error);
    const wrapped = OctavoError.from(new TypeError("oops"));
    assert.deepEqual([wrapped.code, wrapped.message], ["internal_error", "oops"]);
    assert.equal(OctavoError.from("text").message, "text");
  });
});
