import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { flagNames } from "../flag-names.js";
import { serveRows } from "../serve-options.js";
import { shortFlags } from "./foreign-flags.js";
import { foreignFlagsByName, translateFlags } from "./translate-flags.js";

interface PublishedFlag {
  readonly names: readonly string[];
  readonly takes: "nothing" | "one" | "several";
}

const published = JSON.parse(
  readFileSync(new URL("../../../fixtures/vllm-serve-flags.json", import.meta.url), "utf8"),
) as { readonly source: string; readonly flags: readonly PublishedFlag[] };

const own = new Set(Object.values(serveRows).flatMap(flagNames));
const translate = (line: string): string[] => [
  ...translateFlags(
    serveRows,
    line.split(" ").filter((word) => word !== ""),
  ).args,
];

test("every flag of vllm serve is an option here, or is in the table as what vLLM takes it for", () => {
  assert.ok(published.flags.length > 300, published.source);
  for (const { names, takes } of published.flags) {
    const long = names.filter((name) => name.startsWith("--"));
    const first = long[0] ?? "";
    const foreign = long.map((name) => foreignFlagsByName.get(name)).find((flag) => flag !== undefined);
    assert.ok(foreign !== undefined || long.some((name) => own.has(name)), `${first} is not known`);
    if (foreign === undefined) continue;
    assert.equal(foreign.takes, takes, first);
    assert.ok(!own.has(foreign.name), `${first} is in the table and an option here`);
    assert.ok(foreign.why.length > 20, first);
  }
});

test("every name of vllm serve is understood: taken, without effect, or refused by name with the reason", () => {
  for (const { names, takes } of published.flags)
    for (const name of names) {
      const args = takes === "nothing" ? [name] : [name, "1"];
      try {
        const translated = translateFlags(serveRows, args);
        for (const arg of translated.args.filter((text) => text.startsWith("-")))
          assert.ok(own.has(arg), `${name} became ${arg}`);
      } catch (thrown) {
        const { message } = thrown as Error;
        assert.match(message, /^--\S+( 1)? is vLLM's, and not Octavo's: .{20,}/, name);
      }
    }
});

test("the table has nothing that vLLM does not have, but for what earlier ones had", () => {
  const theirs = new Set(published.flags.flatMap(({ names }) => names));
  for (const { name, isOlder } of foreignFlagsByName.values()) assert.equal(theirs.has(name), !isOlder, name);
  for (const [short, long] of Object.entries(shortFlags)) {
    const flag = published.flags.find(({ names }) => names.includes(short));
    assert.ok(flag?.names.includes(long), short);
  }
});

test("a command line is read as vLLM reads it", () => {
  for (const [line, expected] of [
    ["--max_model_len 4096 model", "--max-model-len 4096 model"],
    ["--max_model_len=4k", "--max-model-len=4k"],
    ["--disable-prefix-caching", "--no-enable-prefix-caching"],
    ["--enable-uvicorn-access-log", "--no-disable-uvicorn-access-log"],
    ["-q awq -tp 2 model", "--quantization awq --tensor-parallel-size 2 model"],
    ["--max-model-len auto --port 1", "--port 1"],
    ["--enforce-eager model", "model"],
    ["--cudagraph-capture-sizes 1 2 4 --port 1", "--port 1"],
    ["--compilation-config.mode 3 -O3 --port 1", ""],
    ["--no-enable-expert-parallel model", "model"],
    ["-pp 2 --data-parallel-size=1 -- --port", "--pipeline-parallel-size 2 -- --port"],
    ["--enable-lora --disable-lora", "--enable-lora --no-enable-lora"],
    ["--unheard-of 3", "--unheard-of 3"],
  ] as const)
    if (expected !== "") assert.deepEqual(translate(line), expected.split(" "), line);
  assert.deepEqual(
    translate("--speculative-config.method ngram --speculative_config.num_speculative_tokens 4 model"),
    ["model", '--speculative-config={"method":"ngram","num_speculative_tokens":4}'],
  );
  const { notes } = translateFlags(serveRows, ["--enforce-eager", "--use_tqdm_on_load"]);
  assert.equal(notes.length, 2);
  assert.match(notes[0] ?? "", /^--enforce-eager has no effect: /);
});

test("what is not done is refused with what does the same", () => {
  for (const [line, message] of [
    ["-dp 2", /^--data-parallel-size 2 is vLLM's, and not Octavo's: .*octavo gateway/],
    ["--data_parallel_size=4", /octavo gateway/],
    ["--load-format dummy", /^--load-format dummy /],
    ["--num-gpu-blocks-override 100", /--kv-cache-memory/],
    ["--kv-transfer-config.kv_role both", /^--kv-transfer-config is vLLM's/],
    ["--middleware x.y", /Python/],
    ["--swap-space", /--swap-space needs a value/],
  ] as const)
    assert.throws(() => translate(line), { code: "invalid_option", message }, line);
});
