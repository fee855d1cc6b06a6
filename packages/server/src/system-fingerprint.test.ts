import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { describe, it } from "node:test";

interface Served {
  readonly numerics: string;
  readonly fingerprint: string;
}

const program = `
  const { startOctavoMini } = await import(${JSON.stringify(import.meta.resolve("./testing/octavo-mini.js"))});
  const { llm, client } = await startOctavoMini(JSON.parse(process.argv[1]));
  const answer = await client.chat.completions.create({
    model: llm.name, max_tokens: 1, messages: [{ role: "user", content: "hi" }],
  });
  console.log(JSON.stringify({ numerics: llm.numerics, fingerprint: answer.system_fingerprint }));
  process.exit();
`;

/** What a server says whose kernels are limited to an instruction set, in a process of its own. */
function serve(isa: string, load: Readonly<Record<string, unknown>> = {}): Served {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ["--input-type=module", "-e", program, JSON.stringify({ maxModelLen: 512, ...load })],
    { encoding: "utf8", env: { ...process.env, OCTAVO_ISA: isa } },
  );
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout) as Served;
}

describe("system_fingerprint", () => {
  it("differs where the bits of answers may: kernel path, types of weights and of the KV cache", () => {
    const served = [
      ...["scalar", "neon", "avx2", "avx512", ""].map((isa) => serve(isa)),
      serve("scalar", { kvCacheDtype: "int8" }),
      serve("scalar", { dtype: "f32" }),
      serve("scalar"),
    ];
    const paths = new Set(served.map(({ numerics }) => numerics));
    const pairs = new Set(served.map(({ numerics, fingerprint }) => `${numerics} ${fingerprint}`));
    assert.equal(pairs.size, paths.size, "one fingerprint for a path");
    assert.equal(new Set(served.map(({ fingerprint }) => fingerprint)).size, paths.size);
    assert.ok(paths.size >= 4, [...paths].join("; "));
  });
});
