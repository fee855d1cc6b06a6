import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { register, type RegisterOptions } from "./register.js";

describe("register", () => {
  it("refuses options that make no sense, by name", () => {
    const bad: readonly (readonly [string, RegisterOptions])[] = [
      ["sampleRatio", { sampleRatio: 2 }],
      ["maxContentCharacters", { maxContentCharacters: -1 }],
      ["conventions", { conventions: ["nonsense" as "opentelemetry"] }],
      ["otlpEndpoint", { endpoint: "not an address" }],
    ];
    for (const [param, options] of bad) {
      assert.throws(
        () => register(options),
        (error) => error instanceof OctavoError && error.param === param,
        param,
      );
    }
  });
});
