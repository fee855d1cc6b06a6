import assert from "node:assert/strict";
import { test } from "node:test";
import { readFlags } from "./flags.js";

test("flags of the gpu benchmark: defaults follow the adapter, lists and counts are read", () => {
  const { shapes, types, streams, promptTokens, lanesOnly } = readFlags([]);
  assert.deepEqual(
    { shapes, types, streams, promptTokens, lanesOnly },
    {
      shapes: undefined,
      types: ["f16", "q4_0"],
      streams: [1, 32],
      promptTokens: undefined,
      lanesOnly: false,
    },
  );
  const given = readFlags([
    "--shapes",
    "tiny,llama-3.1-8b",
    "--types",
    "q8_0",
    "--streams",
    "4",
    "--prompt",
    "128",
    "--minutes",
    "9",
  ]);
  assert.deepEqual(
    [given.shapes, given.types, given.streams, given.promptTokens, given.minutes],
    [["tiny", "llama-3.1-8b"], ["q8_0"], [4], 128, 9],
  );
});

test("what it does not know is refused by name", () => {
  for (const [args, message] of [
    [["--shapes", "llama-9b"], /--shapes: "llama-9b" is not one of tiny/],
    [["--types", "q9"], /--types: "q9"/],
    [["--streams", "1,0"], /--streams: "0" is not a whole number/],
    [["--gpu"], /npm run bench -- gpu \[flags\]/],
  ] as const)
    assert.throws(() => readFlags(args), { code: "invalid_option", message });
});
