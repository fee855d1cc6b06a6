// A short run of every fuzzing target, the same each time, and a planted fault that only coverage leads to.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { fuzz, problemOf } from "./fuzz/fuzzer.mjs";
import { targets } from "./fuzz/targets.mjs";

const numRuns = 200;

describe("fuzzing", () => {
  it("covers what reads files and requests of strangers", () => {
    const wanted = "gguf safetensors tokenizer jinja regex schema ebnf request sse output".split(" ");
    assert.deepEqual(Object.keys(targets), wanted);
  });

  for (const [name, target] of Object.entries(targets)) {
    it(`finds nothing in a short run: ${name}`, () => {
      const problems = [];
      const reached = fuzz(target, {
        seed: 1,
        isOver: (done) => done >= numRuns,
        onProblem: (bytes, problem) => problems.push(`${bytes.toString("base64").slice(0, 400)}: ${problem}`),
      });
      assert.deepEqual(problems, []);
      assert.ok(reached.numRuns >= numRuns && reached.blocks > 20, JSON.stringify(reached));
    });
  }

  it("is led by coverage to a fault behind four bytes, and tells it from a refusal", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-planted-"));
    try {
      const path = join(folder, "planted.mjs");
      const guess =
        '(b[0] > 200) { if (b[1] === 7) { if (b[2] > 99) { if (b[3] === 66) throw new TypeError("planted"); } } }';
      writeFileSync(path, `export function run(b) { if ${guess} }`);
      const { run } = await import(pathToFileURL(path).href);
      const target = { seeds: () => [Buffer.alloc(8)], run, covers: /planted\.mjs$/ };
      const found = [];
      const onProblem = (bytes, problem) => found.push([bytes, problem]);
      fuzz(target, { seed: 3, isOver: (done) => found.length > 0 || done > 200_000, onProblem });
      assert.equal(found.length, 1);
      assert.match(found[0][1], /TypeError: planted/);
      assert.match(problemOf(target, found[0][0]), /planted/);
      assert.equal(problemOf(targets.regex, Buffer.from("(")), undefined);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
