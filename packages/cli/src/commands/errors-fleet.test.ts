import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { runOctavo } from "../testing/run-octavo.js";

interface ListedEntry {
  readonly id: string;
  readonly cause: string;
  readonly count: number;
  readonly status: string;
  readonly fix: { readonly of: string; readonly set: object } | null;
}

const epochMs = 1_760_000_000_000;

/** Fifteen calls a second, of which one replica can serve ten: they wait longer and longer. */
const crowded = Array.from({ length: 120 }, (_, index) => {
  const startMs = epochMs + Math.round((1000 * index) / 15);
  return JSON.stringify({
    traceId: String(index).padStart(32, "0"),
    spanId: String(index).padStart(16, "0"),
    startTimeUnixNano: `${startMs}000000`,
    endTimeUnixNano: `${startMs + 3000}000000`,
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.usage.input_tokens": 100 + 10 * (index % 20),
      "gen_ai.usage.output_tokens": 40 + (index % 21),
      "octavo.replica.id": "r0",
      ...(index > 30 && { "gen_ai.latency.time_to_first_token": 2.5, "octavo.first_token.cause": "queue" }),
    },
  });
});
const costs = { base_ms: 5, per_prompt_token_ms: 0.02, per_sequence_ms: 1, cold_start_s: 1 };

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-fleet-"));
  try {
    await run(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("a fleet that is too small gets more replicas, and the simulator proves it", () =>
  inFolder(async (folder) => {
    const path = (name: string): string => join(folder, name);
    await writeFile(path("spans.jsonl"), `${crowded.join("\n")}\n`);
    await writeFile(path("costs.json"), JSON.stringify(costs));
    await writeFile(
      path("cluster.yaml"),
      "version: 1\ndeployments:\n  - name: mini\n    model_loading_config: { model_id: m }\n    num_replicas: 1\n",
    );
    const files = [
      "--state",
      path("feed.json"),
      "--spans",
      path("spans.jsonl"),
      "--cluster",
      path("cluster.yaml"),
    ];
    const listed = await runOctavo(["errors", "list", ...files, "--json"]);
    assert.equal(listed.code, 0, listed.err);
    const { entries } = JSON.parse(listed.out) as { readonly entries: readonly ListedEntry[] };
    const entry = entries.find(({ cause }) => cause === "queue")!;
    assert.deepEqual([entry.fix?.of, entry.fix?.set], ["deployment", { "/num_replicas": 2 }]);

    const prove = (...more: readonly string[]) =>
      runOctavo(["errors", "prove", entry.id, ...files, "--json", ...more]);
    assert.match((await prove()).err, /a fleet is simulated: give what its steps take with --costs/);
    const proven = await prove("--costs", path("costs.json"));
    assert.equal(proven.code, 0, proven.err);
    const { verdict, on, target, cost } = JSON.parse(proven.out) as {
      readonly verdict: string;
      readonly on: string;
      readonly target: {
        readonly before: number;
        readonly after: number;
        readonly interval: readonly number[];
      };
      readonly cost: Readonly<Record<"before" | "after", { readonly replica_seconds: number }>>;
    };
    assert.deepEqual([verdict, on], ["accepted", "simulator"], proven.out);
    assert.ok(target.after < target.before / 2);
    assert.ok(target.interval[1]! < 0 && target.interval[0]! < target.interval[1]!, "over seeds");
    assert.ok(cost.after.replica_seconds > cost.before.replica_seconds, "two replicas take up more than one");

    const issue = await runOctavo([
      "errors",
      "issue",
      entry.id,
      ...files.filter((_, at) => at < 2 || at > 3),
    ]);
    assert.match(issue.out, /in the deployment's section of cluster\.yaml:\n\n```\n\/num_replicas = 2\n```/);
    assert.match(issue.out, /replica-seconds of one replay: [\d.]+ s -> [\d.]+ s/);
  }));

/** A line of the gateway's access log, whose attempts are at a target and then at another. */
const logged = (index: number, atMs: number, fields: object) =>
  JSON.stringify({
    time: new Date(epochMs + atMs).toISOString(),
    request_id: `req-${index}`,
    trace_id: String(index).padStart(32, "a"),
    operation: "chat",
    status: 200,
    model: "m",
    route: "chat",
    tenant: "acme",
    duration_ms: 400,
    first_byte_ms: 50,
    ...fields,
  });
const fellBack = (target: string, outcome: string) => ({
  target: "west",
  attempts: [
    { target, reason: "first", outcome, status: 429, started_ms: 0, ended_ms: 20 },
    { target: "west", reason: "fallback", outcome: "ok", status: 200, started_ms: 20, ended_ms: 400 },
  ],
});

test("fallbacks in the gateway's log and alerts become clusters, with patches that the gateway reads", () =>
  inFolder(async (folder) => {
    const path = (name: string): string => join(folder, name);
    const lines = [
      // east has three calls whenever it refuses
      ...[0, 1, 2, 3].flatMap((burst) => [
        ...[0, 1, 2].map((at) => logged(10 * burst + at, 1000 * burst + at, { target: "east" })),
        ...[3, 4].map((at) =>
          logged(10 * burst + at, 1000 * burst + 10 + at, fellBack("east", "target_rate_limited")),
        ),
      ]),
      ...Array.from({ length: 40 }, (_, index) =>
        logged(
          100 + index,
          9000 + 500 * index,
          index % 8 === 0 ? fellBack("far", "target_failed") : { target: "far" },
        ),
      ),
      ...Array.from({ length: 12 }, (_, index) =>
        logged(300 + index, 9200 + 900 * index, { target: "west" }),
      ),
      logged(200, 40_000, { target: undefined, status: 429, error: "rate_limit_exceeded" }),
      logged(201, 41_000, { target: "far", first_byte_ms: 4000, duration_ms: 5000 }),
      JSON.stringify({ event: "config_reloaded", time: new Date(epochMs).toISOString() }),
    ];
    await writeFile(path("access.log"), `${lines.join("\n")}\n`);
    const gatewayYaml =
      "version: 1\ntargets:\n  east: &t { provider: octavo, url: 'http://127.0.0.1:1', models: [m] }\n  west: *t\n  far: *t\nroutes:\n  chat:\n    models: [m]\n    targets: [east, west, far]\n";
    await writeFile(path("gateway.yaml"), gatewayYaml);
    const posted = {
      version: "4",
      alerts: [
        {
          status: "firing",
          labels: { detector: "decode_latency", reason: "prefill-burst", model_name: "m" },
          annotations: { summary: "decode latency firing: 0.9 s", example_request_id: "req-9" },
          startsAt: new Date(epochMs).toISOString(),
        },
        {
          status: "resolved",
          labels: { detector: "kv_usage" },
          annotations: {},
          startsAt: "2026-01-01T00:00:00Z",
        },
      ],
    };
    const serverLog = {
      level: 40,
      alert: {
        status: "firing",
        detector: "kv_usage",
        reason: "kv-pressure",
        value: 0.95,
        startsAtMs: epochMs,
      },
    };
    await writeFile(
      path("alerts.jsonl"),
      `${JSON.stringify(posted)}\n${JSON.stringify(serverLog)}\n${JSON.stringify({ level: 30, msg: "ready" })}\n`,
    );
    const given = [
      "--state",
      path("feed.json"),
      "--gateway-log",
      path("access.log"),
      "--alerts",
      path("alerts.jsonl"),
    ];
    const listed = await runOctavo(["errors", "list", ...given, "--gateway", path("gateway.yaml"), "--json"]);
    assert.equal(listed.code, 0, listed.err);
    const { calls, unverified, entries } = JSON.parse(listed.out) as {
      readonly calls: number;
      readonly unverified: number;
      readonly entries: readonly (ListedEntry & { readonly kind: string; readonly target?: string })[];
    };
    assert.deepEqual([calls, unverified], [74, 0]);
    assert.deepEqual(
      entries
        .toSorted((a, b) => a.cause.localeCompare(b.cause))
        .map(({ kind, cause, target, count, fix }) => [kind, cause, target, count, fix?.set]),
      [
        ["serving", "preemption", undefined, 1, { "kv-cache-memory": 4 * 4 * 2 ** 30 }],
        ["serving", "prefill_burst", undefined, 1, { "max-prefill-step-ms": 50 }],
        ["gateway", "rate_limit_exceeded", undefined, 1, undefined],
        ["gateway", "slow_target", "far", 1, { "/routes/chat/hedge/after": "p95" }],
        ["gateway", "target_failed", "far", 5, { "/targets/far/breaker/error_rate": 0.06 }],
        ["gateway", "target_rate_limited", "east", 8, { "/targets/east/max_outstanding": 3 }],
      ],
    );
    const kept = await readFile(path("feed.json"), "utf8");
    assert.match(kept, /"field": "attempts\[0\]\.outcome",\s*"text": "target_rate_limited"/);

    const { id } = entries.find(({ cause }) => cause === "target_failed")!;
    const rollout = path("patched.yaml");
    const proving = ["errors", "prove", id, ...given, "--gateway", path("gateway.yaml"), "--speedup", "40"];
    const looking = ["--pairs", "3", "--looks", "1", "--requests", "60"];
    // far is asked first: what it fails is failed for every call, and its neighbours answer
    const fix = ["--set", "/routes/chat/targets/2=west", "--rollout", rollout];
    const proven = await runOctavo([...proving, ...looking, ...fix]);
    assert.equal(proven.code, 0, proven.err);
    assert.match(proven.out, /^(accepted|rejected|inconclusive): .*failed by a target/m);
    assert.match(proven.out, /3 pairs of replays of 60 requests \(0 with their own prompts\), gateway:/);
    assert.match(proven.out, /^- failed by a target: [\d.]+ % -> [\d.]+ % \(.* points to .* points\)$/m);
    assert.match(proven.out, /^- cost of one replay: 0\.000000 US\$ -> 0\.000000 US\$$/m);
    const unknown = ["--set", "/targets/far/braker/error_rate=0.1"];
    const misspelt = await runOctavo([
      "errors",
      "prove",
      id,
      ...given,
      "--gateway",
      path("gateway.yaml"),
      ...unknown,
    ]);
    assert.match(misspelt.err, /gateway\.yaml with the patch.*braker: there is no such setting/);

    // a gateway.yaml that the gateway refuses is refused here, before anything is read
    await writeFile(path("gateway.yaml"), gatewayYaml.replace("[m] }", "[m], weigth: 1 }"));
    const refused = await runOctavo(["errors", "list", ...given, "--gateway", path("gateway.yaml")]);
    assert.match(refused.err, /gateway\.yaml.*weigth: there is no such setting/);
  }));
