import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { runOctavo } from "../testing/run-octavo.js";

const span = (id: number, attributes: unknown, more: object = {}): object => ({
  traceId: String(id).padStart(32, "0"),
  spanId: String(id).padStart(16, "0"),
  startTimeUnixNano: "1760000000000000000",
  endTimeUnixNano: "1760000000900000000",
  status: { code: 2 },
  attributes,
  ...more,
});
const failed = (message: unknown, type: unknown = "server_error") => ({
  "gen_ai.operation.name": "chat",
  "error.type": type,
  "error.message": message,
});

/** Fields as OpenLLMetry, OpenInference and Langfuse name them, with values that their schemas do not have. */
const odd: readonly object[] = [
  span(1, { "llm.request.type": "chat", "gen_ai.prompt.0.content": 7, "error.type": ["rate", "limit"] }),
  span(2, { "traceloop.span.kind": "llm", "llm.request.type": "chat", "error.type": { code: 429 } }),
  span(3, { "openinference.span.kind": "LLM", "llm.input_messages": "not a list", "error.type": true }),
  span(4, { "openinference.span.kind": "LLM", "llm.token_count.prompt": "many", "error.type": "x" }),
  span(5, { "langfuse.observation.type": "generation", "langfuse.observation.level": "ERROR" }),
  span(6, [{ key: "gen_ai.operation.name", value: { stringValue: "chat" } }, { key: 4 }, null, "text"]),
  // clocks that are wrong: before 1970, after the last day that a date has, backwards, of texts
  span(7, failed("clock"), { startTimeUnixNano: "-99999999999999999999999" }),
  span(8, failed("clock"), { endTimeUnixNano: "99999999999999999999999999999" }),
  span(9, failed("clock"), {
    startTimeUnixNano: "99999999999999999999999999999",
    endTimeUnixNano: "99999999999999999999999999999",
  }),
  span(10, failed("clock"), { startTimeUnixNano: "yesterday" }),
  span(11, failed("clock"), { startTimeUnixNano: "1760000009000000000" }),
  span(12, failed("m".repeat(2_000_000))),
  span(13, failed(`"${"\\".repeat(1_000_000)}`)),
  span(14, failed("\u0000\u001b[2J\ud800 lone")),
  span(15, failed("", "")),
  span(16, failed("prototype", "__proto__")),
  span(17, { ...failed("tenants"), "octavo.tenant.id": "__proto__" }),
  { start_ms: 1e300, duration_ms: -5, outcome: "error", span_id: 1, attributes: "{", operation: "chat" },
  { traceId: "t", attributes: null },
];

test("spans with fields and times that no schema has are findings or left out, and the list is printed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-odd-spans-"));
  try {
    const path = join(folder, "spans.jsonl");
    const lines = odd.map((one) => JSON.stringify(one));
    // each twice, as two exporters write them, and the last one cut off
    await writeFile(path, [...lines, ...lines, lines[0]!.slice(0, 90)].join("\n"));
    const state = join(folder, "feed.json");
    const list = async (...more: readonly string[]) =>
      runOctavo(["errors", "list", "--spans", path, "--state", state, ...more]);
    const shown = await list();
    assert.equal(shown.code, 0, shown.err);
    assert.ok(!shown.out.includes("\u001b") && !shown.out.includes("\u0000"));
    const { out } = await list("--json");
    const { entries, findings } = JSON.parse(out) as {
      findings: number;
      entries: readonly { id: string; count: number; cause: string; by_tenant?: object }[];
    };
    assert.equal(
      entries.reduce((sum, { count }) => sum + count, 0),
      findings,
    );
    // 7 to 10 have times that no date has, 18 and 19 are no calls
    assert.equal(findings, 13);
    assert.ok(entries.some(({ cause }) => cause === "__proto__"));
    assert.ok(entries.some(({ by_tenant: tenants }) => Object.keys(tenants ?? {}).includes("__proto__")));
    for (const { id } of entries.slice(0, 2)) {
      const issue = await runOctavo(["errors", "issue", id, "--state", state]);
      assert.equal(issue.code, 0, issue.err);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
