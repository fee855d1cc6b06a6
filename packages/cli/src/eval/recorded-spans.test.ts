import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { EvalReport } from "@octavo/evals";
import { type ConventionName, conventionNames, type LlmSpan, renderAttributes } from "@octavo/tracing";
import { ContentStore } from "@octavo/tracing/store";
import { type EndedOctavo, runOctavo, serveOctavo } from "../testing/run-octavo.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-recorded-"));
});
after(() => rm(folder, { recursive: true }));

const octavo = (...args: readonly string[]): Promise<EndedOctavo> =>
  runOctavo(["eval", ...args], { cwd: folder });

async function reportOf(...args: readonly string[]): Promise<EvalReport> {
  const ended = await octavo(...args, "--json", "report.json");
  assert.ok(ended.code === 0 || args[0] === "check", ended.err);
  return JSON.parse(await readFile(join(folder, "report.json"), "utf8")) as EvalReport;
}

/** A recorded chat of a tenant, in which a tool was called. */
function spanOf(index: number, tenant: string): LlmSpan {
  return {
    identity: {
      traceId: index.toString(16).padStart(32, "a"),
      spanId: index.toString(16).padStart(16, "b"),
      parentSpanId: undefined,
      traceState: undefined,
    },
    side: "server",
    operation: "chat",
    startEpochMs: 1_700_000_000_000 + index,
    durationMs: 100,
    outcome: { kind: "ok" },
    provider: "octavo",
    server: undefined,
    request: { model: "m", maxTokens: 8, temperature: 0 },
    response: { id: `chatcmpl-${index}`, model: "m", finishReasons: ["stop"] },
    usage: { inputTokens: 10, outputTokens: 3 },
    stream: undefined,
    serving: undefined,
    context: { tenantId: tenant, ownerId: `tenant ${tenant}` },
    content: {
      systemInstructions: [{ type: "text", content: "Be brief." }],
      inputMessages: [
        { role: "user", parts: [{ type: "text", content: `Say ${index}` }] },
        { role: "assistant", parts: [{ type: "tool_call", id: "c", name: "look", arguments: '{"at":1}' }] },
        { role: "tool", parts: [{ type: "tool_call_response", id: "c", response: `it is ${index}` }] },
      ],
      outputMessages: [
        {
          role: "assistant",
          parts: [{ type: "text", content: index % 4 === 0 ? "no" : `yes ${index}` }],
          finishReason: "stop",
        },
      ],
      toolDefinitions: [{ type: "function", function: { name: "look", parameters: { type: "object" } } }],
      prompts: [],
    },
  };
}

const spans = Array.from({ length: 20 }, (_, index) => spanOf(index, index < 12 ? "acme" : "zeta"));
const says = '{"name": "contains", "options": {"value": "yes"}}';

async function write(convention: ConventionName): Promise<string> {
  const body = spans.map((span) => ({
    name: "chat m",
    spanId: span.identity.spanId,
    traceId: span.identity.traceId,
    kind: 2,
    startTimeUnixNano: `${span.startEpochMs}000000`,
    endTimeUnixNano: `${span.startEpochMs + span.durationMs}000000`,
    attributes: renderAttributes(span, [convention]),
  }));
  const path = join(folder, `${convention}.json`);
  await writeFile(path, JSON.stringify(body));
  return path;
}

test("recorded answers score the same from the store and from every convention that has content", async () => {
  const store = await ContentStore.open({ folder: join(folder, "store"), contentMaxAgeMs: 86_400_000 });
  for (const span of spans) store.add(span);
  await store.close(30_000);
  const withContent = conventionNames.filter((name) => name !== "traceai");
  const files = [join(folder, "store", "content"), ...(await Promise.all(withContent.map(write)))];
  assert.equal(files.length, 3);
  for (const file of files) {
    const { evaluators, numCases, cases } = await reportOf("score", "--spans", file, "--evaluator", says);
    assert.equal(numCases, 20, file);
    assert.deepEqual(
      [evaluators[0]?.scored, evaluators[0]?.passed, evaluators[0]?.target],
      [20, 15, "candidate"],
    );
    const [row] = cases.filter(({ input }) => input === "Say 5");
    assert.equal(row?.answers["candidate"]?.answer.text, "yes 5");
  }
  const own = await reportOf("score", "--spans", files[0]!, "--owner", "tenant zeta", "--evaluator", says);
  assert.equal(own.numCases, 8);
  assert.deepEqual(new Set(own.cases.map(({ tenant }) => tenant)), new Set(["zeta"]));
  assert.match(own.warnings.join("\n"), /12 cases of content were left out: of another owner or side/);
});

test("a check scores recorded answers, and says what it cannot score", async () => {
  const path = await write("opentelemetry");
  const worse = join(folder, "worse.json");
  await writeFile(worse, (await readFile(path, "utf8")).replaceAll("yes", "no"));
  const files = [`kept=${path}`, `kept-again=${path}`, `evicted=${worse}`];
  const check = ["check", "eviction", "--spans", ...files];
  const { checks, warnings } = await reportOf(...check, "--evaluator", says);
  assert.deepEqual(warnings, []);
  assert.match(JSON.stringify(checks[0]), /contains/, "what the evaluator gave is judged");
  assert.doesNotMatch(JSON.stringify((await reportOf(...check)).checks[0]), /contains/);
  const bare = join(folder, "bare.json");
  await writeFile(
    bare,
    (await readFile(path, "utf8"))
      .replaceAll("gen_ai.output.messages", "x")
      .replaceAll("gen_ai.input.messages", "y"),
  );
  const ended = await octavo("check", "eviction", "--spans", bare, "--evaluator", says);
  assert.notEqual(ended.code, 0);
  assert.match(ended.err, /none of the 20 recorded calls can be scored: .*--trace-content/);
  const asked = await octavo(...check, "--target", "http://127.0.0.1:1");
  assert.match(asked.err, /--target.*no server is asked/);
});

test("what a server served is scored, and asked once more", async () => {
  const store = join(folder, "served");
  const server = await serveOctavo("--trace-store", store, "--trace-content", "full");
  const ask = (tenant: string, content: string): Promise<string> =>
    fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-tenant-id": tenant },
      body: JSON.stringify({ messages: [{ role: "user", content }], max_tokens: 8, temperature: 0 }),
    }).then((response) => response.text());
  await Promise.all([ask("acme", "Hello"), ask("acme", "What is your name?"), ask("zeta", "Bye")]);
  assert.equal((await server.stop()).code, 0);
  const content = join(store, "content");
  const scored = await reportOf("score", "--spans", content, "--owner", "tenant acme", "--evaluator", says);
  assert.equal(scored.numCases, 2);

  const again = await serveOctavo();
  const same = '{"name": "equals_baseline"}';
  const run = ["run", "--spans", content, "--target", again.url];
  const repeated = await reportOf(...run, "--evaluator", says);
  await again.stop();
  assert.deepEqual(
    repeated.targets.map(({ name, url }) => [name, url === "recorded spans"]),
    [
      ["baseline", true],
      ["candidate", false],
    ],
  );
  for (const { answers } of repeated.cases)
    assert.equal(answers["candidate"]?.answer.text, answers["baseline"]?.answer.text, same);
});

test("runs that would score nothing are refused", async () => {
  const path = await write("opentelemetry");
  for (const [args, message] of [
    [["score", "--spans", path], /--evaluator: nothing would be scored/],
    [["score", "--evaluator", says], /--spans: name at least one/],
    [["score", "--spans", "none.json", "--evaluator", says], /the spans in .*none\.json cannot be read/],
    [
      ["run", "--spans", path, "--target", "http://h", "--baseline", "http://b", "--evaluator", says],
      /--baseline: with --spans/,
    ],
    [["run", "--target", "http://h", "--evaluator", says], /--dataset: name at least one file/],
  ] as const) {
    const ended = await octavo(...args);
    assert.notEqual(ended.code, 0, args.join(" "));
    assert.match(ended.err, message);
  }
});
