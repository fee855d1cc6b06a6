import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { Gateway, GatewayListener, loadGatewayConfig } from "@octavo/gateway";
import {
  clusterFindings,
  type ConfigPatch,
  emptyFeed,
  findingsOfGatewayLog,
  type FixProof,
  type TargetAnswer,
  updateFeed,
} from "@octavo/optimize";
import { YamlSource } from "@octavo/protocol/yaml";
import { Random } from "@octavo/statistics";
import { proveOnGateway } from "./prove-on-gateway.js";
import { patchedGatewayText } from "./rollout-file.js";
import { StandInTarget } from "./stand-in-target.js";

const epochMs = 1_760_000_000_000;
type Line = Readonly<Record<string, unknown>>;

/** A line of the access log; calls come every 40 ms. */
const line = (index: number, fields: object): Line => ({
  time: new Date(epochMs + 40 * index).toISOString(),
  request_id: `req-${index}`,
  trace_id: String(index).padStart(32, "a"),
  operation: "chat",
  status: 200,
  model: "m",
  stream: index % 2 === 0,
  route: "chat",
  tenant: index % 4 === 0 ? "large" : "small",
  target: "east",
  duration_ms: 120,
  first_byte_ms: 60,
  prompt_tokens: 40,
  completion_tokens: 4,
  ...fields,
});
const failing = (outcome: string, endedMs: number, status?: number, startedMs = 0) => ({
  target: "east",
  reason: startedMs === 0 ? "first" : "retry",
  outcome,
  ...(status !== undefined && { status }),
  started_ms: startedMs,
  ended_ms: startedMs + endedMs,
});
const lost = (outcome: string, endedMs: number, status?: number) => ({
  target: undefined,
  status: 502,
  error: outcome,
  first_byte_ms: undefined,
  duration_ms: 2 * endedMs,
  prompt_tokens: undefined,
  completion_tokens: undefined,
  attempts: [failing(outcome, endedMs, status), failing(outcome, endedMs, status, endedMs)],
});
const rescued = (outcome: string, endedMs: number, status?: number) => ({
  target: "west",
  first_byte_ms: endedMs + 60,
  duration_ms: endedMs + 120,
  attempts: [
    failing(outcome, endedMs, status),
    {
      target: "west",
      reason: "fallback",
      outcome: "ok",
      status: 200,
      started_ms: endedMs,
      ended_ms: endedMs + 120,
    },
  ],
});

/** Forty calls, of which such a share have something else. */
function recording(other: object, more: readonly Line[] = [], share = 1 / 3): readonly Line[] {
  const random = new Random(3);
  return [
    ...Array.from({ length: 40 }, (_, index) => line(index, random.uniform() < share ? other : {})),
    ...more,
  ];
}
/** West has calls of its own. */
const ofWest = Array.from({ length: 20 }, (_, index) =>
  line(100 + index, { model: "spare", route: "spare", target: "west" }),
);

const yaml = (chat: string, more = ""): string => `version: 1
targets:
  east: { provider: octavo, url: 'http://127.0.0.1:1', api_key: secret-of-east, models: { m: { input: 1, output: 5 } }, breaker: { failures: 100, error_rate: 1 } }
  west: { provider: openai, api_key: secret-of-west, models: { m: { input: 10, output: 50 }, spare: {} } }
  north: { provider: octavo, url: 'http://127.0.0.1:1', models: [m] }
routes:
  chat: { models: [m], targets: [east], retries: { attempts: 2, budget: 4 }, ${chat} }
  spare: { models: [spare], targets: [{ target: west }] }
  rescue: { models: [rescue], targets: [{ target: west, model: m }] }
${more}`;

const filesOf = (text: string) => ({
  gateway: { name: "gateway.yaml", value: new YamlSource("gateway.yaml", text).value },
});

async function proven(
  lines: readonly Line[],
  text: string,
  patch: ConfigPatch["set"],
  cause: string,
  pairs = 3,
  signal = new AbortController().signal,
): Promise<FixProof> {
  const { findings } = findingsOfGatewayLog(lines);
  const { entries } = updateFeed(emptyFeed, await clusterFindings(findings, {}), 1);
  const entry = entries.find((one) => one.cause === cause);
  assert.ok(entry, `${cause} in ${entries.map((one) => one.cause).join(", ")}`);
  return proveOnGateway({
    entry,
    patch,
    files: filesOf(text),
    lines,
    isWanted: (finding) => finding.cause === cause,
    firstTokenMs: 1000,
    requests: 40,
    pairs,
    looks: 1,
    speedup: 4,
    seed: 1,
    leastImprovement: 0.1,
    signal,
  });
}

test("a fallback for a target that fails a third of its calls is accepted, with what it costs", async () => {
  const lines = recording(lost("target_failed", 20, 500), ofWest);
  const patch = { "/routes/chat/fallbacks/-": "rescue" };
  const text = yaml("fallbacks: []");
  const proof = await proven(lines, text, patch, "target_failed", 6);
  assert.deepEqual(
    [proof.verdict, proof.on, proof.requests],
    ["accepted", "gateway", 40],
    JSON.stringify(proof),
  );
  const { target, cost } = proof;
  assert.equal(target?.measure, "failed");
  assert.ok(target.before > 0.2 && target.before < 0.5 && target.after < 0.1, JSON.stringify(target));
  assert.ok(target.interval![0] < target.change && target.change < target.interval![1]);
  // some 27 answers of 40 and 4 tokens at 1 and 5 dollars a million; those of the other target are ten times as much
  assert.ok(cost.before.usd! > 15 * 60e-6 && cost.before.usd! < 37 * 60e-6, String(cost.before.usd));
  assert.ok(cost.after.usd! > 2 * cost.before.usd!);

  // what is handed to the gateway, as its own check reads it
  const file = patchedGatewayText(
    { ...filesOf(text), settings: {}, cluster: undefined },
    proof,
    "patched.yaml",
  );
  assert.match(file, /^#   \/routes\/chat\/fallbacks\/- = rescue$/m);
  assert.match(file, /octavo gateway check --config patched\.yaml\n.*kill -HUP/);
  const { routes, targets } = loadGatewayConfig({ name: "patched.yaml", text: file, environment: {} });
  assert.deepEqual(routes["chat"]?.fallbacks, ["rescue"]);
  assert.equal(targets["west"]?.api_key, "secret-of-west");
});

test("what changes nothing is inconclusive, and what takes the fallback away is rejected", async () => {
  const without = recording(lost("target_failed", 20, 500), ofWest);
  const same = await proven(without, yaml("fallbacks: []"), { "/targets/east/weight": 2 }, "target_failed");
  assert.equal(same.verdict, "inconclusive", same.reason);
  assert.ok(Math.abs(same.target!.before - same.target!.after) < 0.15, "both gateways meet the same answers");

  // without it, east is asked again, which fails as often
  const saved = recording(rescued("target_failed", 20, 500), ofWest, 0.6);
  const harmful = { "/routes/chat/fallbacks/0": null };
  const worse = await proven(saved, yaml("fallbacks: [rescue]"), harmful, "target_failed", 5);
  assert.notEqual(worse.verdict, "accepted", JSON.stringify(worse));
  assert.ok(worse.target!.after > worse.target!.before || /failed worse/.test(worse.reason), worse.reason);
});

// times of a loaded machine may leave it open, but never turn it round
test("a shorter time to wait for a target that hangs makes first bytes earlier, a longer one later", async () => {
  const hung = recording(rescued("target_timeout", 4000), ofWest);
  const text = yaml("fallbacks: [rescue], timeouts: { first_byte: 4s }");
  const set = (time: string) => ({ "/routes/chat/timeouts/first_byte": time });
  const shorter = await proven(hung, text, set("1500ms"), "target_timeout", 5);
  const longer = await proven(hung, text, set("12s"), "target_timeout");
  for (const [proof, isBetter] of [
    [shorter, true],
    [longer, false],
  ] as const) {
    assert.notEqual(proof.verdict, isBetter ? "rejected" : "accepted", JSON.stringify(proof));
    assert.equal(proof.target?.measure, "first byte");
    assert.equal(proof.target.after < proof.target.before, isBetter, JSON.stringify(proof));
  }
});

test("limits count by the recorded tenants, at the replay's pace", async () => {
  const refused = { target: undefined, status: 429, error: "rate_limit_exceeded", first_byte_ms: undefined };
  const lines = Array.from({ length: 40 }, (_, index) =>
    line(index, index % 4 === 0 && index > 16 ? refused : {}),
  );
  const limits =
    "rate_limits: { rules: [{ name: l, per: tenant, tenants: [large], requests_per_minute: 30 }] }";
  const raised = { "/rate_limits/rules/0/requests_per_minute": 6000 };
  const proof = await proven(lines, yaml("fallbacks: []", limits), raised, "rate_limit_exceeded");
  assert.equal(proof.verdict, "accepted", JSON.stringify(proof));
  // ten calls of the tenant, of which five pass at once, and one or two more in the time; tenants count alike
  assert.ok(Math.abs(proof.target!.before - 0.5 * (4 / 10)) < 0.11, String(proof.target?.before));
});

test("what cannot be shown is refused before anything runs", async () => {
  const lines = recording(lost("target_failed", 20, 500), ofWest);
  const text = yaml("fallbacks: []");
  const refused: readonly (readonly [ConfigPatch["set"], RegExp])[] = [
    [{ "/routes/chat/fallbaks": "x" }, /gateway\.yaml with the patch.*fallbaks: there is no such setting/],
    [{ "/targets/east/url": "http://127.0.0.1:2" }, /sets \/targets\/east\/url, which a replay cannot show/],
    [{ "/routes/chat/when/tags": null }, /a replay cannot show/],
  ];
  for (const [patch, says] of refused)
    await assert.rejects(proven(lines, text, patch, "target_failed"), says);
  // north has no recorded calls
  await assert.rejects(
    proven(lines, text, { "/routes/chat/targets/-": "north" }, "target_failed"),
    /the replay asks north, of which the log has fewer than 20 calls/,
  );
});

test("an interrupted proof says so, and leaves nothing behind", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-interrupted-"));
  const usual = process.env["TMPDIR"];
  process.env["TMPDIR"] = folder;
  try {
    const patch = { "/routes/chat/fallbacks/-": "rescue" };
    const lines = recording(lost("target_failed", 20, 500), ofWest);
    const proof = proven(lines, yaml("fallbacks: []"), patch, "target_failed", 3, AbortSignal.timeout(150));
    await assert.rejects(proof, { code: "request_cancelled", message: "the proof was interrupted" });
    assert.deepEqual(await readdir(folder), []);
  } finally {
    if (usual === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = usual;
    await rm(folder, { recursive: true });
  }
});

test("from a gateway's own log a proof foresees what the patch then does", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-foresee-"));
  const random = new Random(5);
  const answer: TargetAnswer = { kind: "answer", firstByteMs: 10, durationMs: 20 };
  const tokens = { promptTokens: 30, cachedTokens: 0, outputTokens: 3, retryAfterS: 1 };
  const east = await StandInTarget.start(() => ({
    ...tokens,
    what: random.uniform() < 0.6 ? { kind: "status", status: 500, durationMs: 5 } : answer,
  }));
  const west = await StandInTarget.start(() => ({ ...tokens, what: answer }));
  const fallbacks = (names: string): string => `version: 1
access_log: ${join(folder, `log-${names}`)}
targets:
  east: { provider: openai-compatible, url: '${east.url}', models: [m], breaker: { failures: 100, error_rate: 1 } }
  west: { provider: openai-compatible, url: '${west.url}', models: [m, spare] }
routes:
  chat: { models: [m], targets: [east], fallbacks: [${names}], retries: { attempts: 2, budget: 4 } }
  spare: { models: [spare], targets: [west] }
  rescue: { models: [rescue], targets: [{ target: west, model: m }] }
`;
  /** The lines of a gateway that really asks them. */
  const served = async (names: string): Promise<readonly Line[]> => {
    const config = loadGatewayConfig({ name: "gateway.yaml", text: fallbacks(names), environment: {} });
    const gateway = await Gateway.open({ config });
    const listener = new GatewayListener(gateway, config.limits);
    const { url } = await listener.listen("127.0.0.1", 0);
    for (let index = 0; index < 80; index++) {
      const body = { model: index % 4 === 3 ? "spare" : "m", messages: [{ role: "user", content: "hello" }] };
      const headers = { "content-type": "application/json" };
      const sent = { method: "POST", headers, body: JSON.stringify({ ...body, stream: index % 2 === 0 }) };
      await (await fetch(`${url}/v1/chat/completions`, sent)).text();
    }
    await listener.close();
    await gateway.close();
    const text = await readFile(config.access_log, "utf8");
    return text
      .trim()
      .split("\n")
      .map((one) => JSON.parse(one) as Line);
  };
  const failedShare = (lines: readonly Line[]): number => {
    const own = lines.filter(({ route }) => route === "chat");
    return own.filter(({ error }) => error !== undefined).length / own.length;
  };
  try {
    const before = await served("");
    const patch = { "/routes/chat/fallbacks/-": "rescue" };
    const { verdict, target } = await proven(before, fallbacks(""), patch, "target_failed", 5);
    const after = await served("rescue");
    assert.equal(verdict, "accepted", JSON.stringify(target));
    assert.ok(
      Math.abs(target!.before - failedShare(before)) < 0.15,
      `${target!.before}, ${failedShare(before)}`,
    );
    assert.ok(Math.abs(target!.after - failedShare(after)) < 0.05, `${target!.after}, ${failedShare(after)}`);
  } finally {
    await east[Symbol.asyncDispose]();
    await west[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  }
});
