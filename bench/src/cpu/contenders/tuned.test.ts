import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { modelShapes } from "../models/shapes.js";
import type { Job, MeasureContext } from "./contender.js";
import { tuned } from "./tuned.js";

const context: MeasureContext = { model: { path: "", shape: modelShapes.tiny }, threads: 1, env: {} };
const decode: Job = { kind: "decode", streams: 1, promptTokens: 1, newTokens: 1 };
const start: Job = { kind: "first-token", promptTokens: 1, keepsPacked: false };

function peer(speeds: Readonly<Record<string, number | "fails">>) {
  const asked: string[] = [];
  const contender = tuned<string>({
    name: "peer",
    supports: () => true,
    settings: Object.keys(speeds).map((name) => ({ name, value: name })),
    measure: (_, __, value) => {
      asked.push(value);
      const speed = speeds[value];
      return typeof speed === "number"
        ? Promise.resolve({ decodeTokensPerSecond: speed })
        : Promise.reject(new OctavoError("engine_failed", `no ${value}`));
    },
  });
  return { contender, asked };
}

describe("a tuned peer", () => {
  test("runs a case with the setting that was fastest, and names it", async () => {
    const { contender, asked } = peer({ defaults: 10, flash: 15, bf16: 12 });
    await contender.prepare?.(decode, context);
    assert.equal((await contender.measure(decode, context)).decodeTokensPerSecond, 15);
    assert.equal(contender.setting?.(), "flash");
    assert.deepEqual(asked, ["defaults", "flash", "bf16", "flash"]);
  });

  test("a case without a rate runs with the defaults, whatever the last case chose", async () => {
    const { contender, asked } = peer({ defaults: 10, flash: 15 });
    await contender.prepare?.(decode, context);
    asked.length = 0;
    await contender.prepare?.(start, context);
    await contender.measure(start, context);
    assert.deepEqual(asked, ["defaults"]);
  });

  test("a setting that fails is left out; a peer that fails with all of them fails", async () => {
    const { contender } = peer({ defaults: "fails", bf16: 12 });
    await contender.prepare?.(decode, context);
    assert.equal(contender.setting?.(), "bf16");
    await assert.rejects(
      async () => await peer({ defaults: "fails", bf16: "fails" }).contender.prepare?.(decode, context),
      {
        code: "engine_failed",
        message: "no bf16",
      },
    );
  });
});
