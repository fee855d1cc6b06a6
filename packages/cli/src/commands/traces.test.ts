import assert from "node:assert/strict";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { type EndedOctavo, runOctavo, serveOctavo } from "../testing/run-octavo.js";

const octavo = (...args: readonly string[]): Promise<EndedOctavo> => runOctavo(args);

test("a server keeps its spans where octavo traces finds them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-traces-"));
  try {
    const store = join(folder, "store");
    const server = await serveOctavo("--trace-store", store);
    for (const [tenant, id] of [
      ["acme", "r-1"],
      ["zeta", "r-2"],
    ] as const) {
      const response = await fetch(`${server.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-tenant-id": tenant, "x-request-id": id },
        body: JSON.stringify({ prompt: "hello", max_tokens: 4, ignore_eos: true }),
      });
      assert.equal(response.status, 200);
      await response.text();
    }
    assert.equal((await server.stop()).code, 0);

    const list = await octavo("traces", "list", "--store", store);
    assert.match(list.out, /^time +trace .*\n.* text_completion +octavo-mini +zeta +ok .*\n.* acme /);
    const shown = await octavo("traces", "show", "r-1", "--store", store, "--json");
    const row = JSON.parse(shown.out) as Readonly<Record<string, unknown>>;
    assert.equal(row["tenant"], "acme");
    assert.equal(row["output_tokens"], 4);
    assert.equal(typeof row["ttft_ms"], "number");
    const stats = await octavo(
      "traces",
      "stats",
      "--store",
      store,
      "--by",
      "tenant",
      "--bucket",
      "1d",
      "--json",
    );
    const groups = stats.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly count: number });
    assert.deepEqual(
      groups.map(({ count }) => count),
      [1, 1],
    );
    const file = join(folder, "spans.parquet");
    const exported = await octavo("traces", "export", file, "--store", store, "--tenant", "zeta");
    assert.match(exported.out, /^1 spans in /);
    assert.ok((await stat(file)).size > 0);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("questions that make no sense end with one line", async () => {
  for (const [args, expected] of [
    [["traces", "show", "nothing", "--store", "/nonexistent"], /no span of "nothing".*\[not_found\]/],
    [["traces", "stats", "--by", "weather"], /--by: expected one of model, tenant.*\[invalid_option\]/],
    [["traces", "stats", "--bucket", "soon"], /time span.*\[invalid_option\]/],
    [["traces", "list", "--since", "yesterday"], /time span.*\[invalid_option\]/],
    [
      ["serve", "nobody/nothing", "--otlp-endpoint", "localhost:4317"],
      /--otlp-endpoint: .*\[invalid_option\]/,
    ],
  ] as const) {
    const ended = await octavo(...args);
    assert.equal(ended.code, 1, args.join(" "));
    assert.match(ended.err, expected, args.join(" "));
  }
  assert.equal((await octavo("traces", "list", "--store", "/nonexistent")).out, "no spans\n");
});
