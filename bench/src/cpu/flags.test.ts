import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenCases, fullName } from "./cases.js";
import { caseGroups, parseFlags } from "./flags.js";

const parse = (...args: string[]) => parseFlags(args, "/results/cpu.json", {});

test("without flags, everything on both models is measured and published", () => {
  const options = parse();
  assert.deepEqual(options.groups, caseGroups);
  assert.deepEqual(options.shapes, ["qwen2.5-0.5b", "llama-3.2-1b"]);
  assert.deepEqual([options.repeats, options.promptTokens, options.isQuick], [3, 512, false]);
  assert.equal(options.outputPath, "/results/cpu.json");
});

test("a quick run publishes nothing unless told where", () => {
  assert.equal(parse("--quick").outputPath, undefined);
  assert.equal(parse("--quick", "--output", "/tmp/x.json").outputPath, "/tmp/x.json");
  assert.deepEqual(parse("--quick").shapes, ["tiny"]);
});

test("lists choose cases", () => {
  const options = parse(
    "--cases",
    "decode,prefill",
    "--models",
    "llama-3.2-1b",
    "--types",
    "Q4_0,bf16",
    "--streams",
    "1,8",
  );
  assert.deepEqual(chosenCases(options).map(fullName), [
    "decode, 1 stream, llama-3.2-1b Q4_0",
    "decode, 8 streams, llama-3.2-1b Q4_0",
    "prefill 512, llama-3.2-1b Q4_0",
    "decode, 1 stream, llama-3.2-1b BF16",
    "prefill 512, llama-3.2-1b BF16",
  ]);
});

test("folders come from flags before the environment", () => {
  const env = { OCTAVO_BENCH_LLAMA_CPP: "/one" };
  assert.equal(parseFlags([], "/out", env).llamaCppFolder, "/one");
  assert.equal(parseFlags(["--llama-cpp", "/two"], "/out", env).llamaCppFolder, "/two");
  assert.equal(parse().llamaCppFolder, undefined);
});

for (const args of [
  ["--cases", "speed"],
  ["--types", "q3_k"],
  ["--repeats", "0"],
  ["--threads", "two"],
  ["--streams", "1,,8"],
  ["--unknown"],
]) {
  test(`refuses ${args.join(" ")}`, () => {
    assert.throws(() => parse(...args), { code: "invalid_option" });
  });
}

test("every case but BF16 decode has a target", () => {
  const names = chosenCases(parse()).filter(({ figures }) =>
    figures.every(({ own, peers }) => own === undefined && peers === undefined),
  );
  assert.ok(names.every(({ group, type }) => group === "decode" && type === "bf16"));
});
