import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseExposition } from "../testing/parse-exposition.js";
import { startTestServer, type TestServer } from "../testing/test-server.js";

const deploy = fileURLToPath(new URL("../../../../deploy", import.meta.url));
const rulesPath = join(deploy, "prometheus", "rules.yml");
const rules = readFileSync(rulesPath, "utf8");
const dashboard: unknown = JSON.parse(readFileSync(join(deploy, "grafana", "octavo.json"), "utf8"));

/** The `expr` of every rule: on its line, or on the indented lines below. */
const ruleExpressions = [...rules.matchAll(/^( *)expr: (?:>-\n((?:\1 +.*\n)+)|(.*)\n)/gm)].map(
  ([, , folded, plain]) => (folded ?? plain ?? "").replaceAll(/\s+/g, " ").trim(),
);
const recorded = [...rules.matchAll(/^ *- record: (\S+)$/gm)].map(([, name = ""]) => name);

/** Every `expr`, wherever it stands. */
function expressionsOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(expressionsOf);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, entry]) =>
    name === "expr" && typeof entry === "string" ? [entry] : expressionsOf(entry),
  );
}

const dashboardExpressions = expressionsOf(dashboard);

/** What looks like a metric in an expression: names with a colon, those of the process, and `up`. */
function metricsOf(expression: string): readonly string[] {
  const bare = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, "")
    .replaceAll(/\{[^}]*\}/g, "")
    .replaceAll(/\[[^\]]*\]/g, "");
  return [...bare.matchAll(/[a-zA-Z_:][\w:]*/g)]
    .map(([name]) => name)
    .filter((name) => name.includes(":") || /^(process|nodejs)_|^up$/.test(name));
}

async function work(server: TestServer): Promise<void> {
  const tags = { "x-tenant-id": "acme", "x-octavo-feature": "search" };
  for (let index = 0; index < 3; index += 1)
    await (await server.post("/v1/completions", { prompt: "a", max_tokens: 5 }, tags)).text();
  await (await server.post("/v1/completions", { prompt: "a", n: 0 })).text();
}

describe("deploy/", () => {
  it("names only metrics that the server has, under labels that they carry", async () => {
    await using server = await startTestServer({ dollarsPerHour: 1 });
    await work(server);
    const families = parseExposition(await (await fetch(`${server.url}/metrics`)).text());
    const known = new Set(["up", ...recorded]);
    for (const [name, { type }] of families) {
      if (type !== "histogram") known.add(name);
      else for (const suffix of ["_bucket", "_sum", "_count"]) known.add(name + suffix);
    }
    assert.ok(ruleExpressions.length > 15 && dashboardExpressions.length > 40);
    const used = [...ruleExpressions, ...dashboardExpressions].flatMap((expression) => {
      const names = metricsOf(expression);
      assert.ok(names.length > 0, expression);
      return names;
    });
    assert.deepEqual(
      used.filter((name) => !known.has(name)),
      [],
    );
    for (const expression of [...ruleExpressions, ...dashboardExpressions]) {
      for (const [, name = "", matchers = ""] of expression.matchAll(/([\w:]+)\{([^}]*)\}/g)) {
        const samples =
          families.get(name.replace(/_(?:bucket|sum|count)$/, ""))?.samples ?? families.get(name)?.samples;
        const labels = samples?.[0]?.labels;
        if (labels === undefined) continue;
        for (const [, label = ""] of matchers.matchAll(/(\w+) *(?:=~|!~|!=|=)/g))
          assert.ok(
            label === "job" || label === "instance" || Object.hasOwn(labels, label),
            `${name}: ${label}`,
          );
      }
    }
  });

  it("passes promtool, and its rules fire when they should and only then", (t) => {
    if (spawnSync("promtool", ["--version"]).status !== 0) {
      t.skip("promtool is not installed (Debian: apt-get install prometheus)");
      return;
    }
    for (const args of [
      ["check", "rules", rulesPath],
      ["check", "config", join(deploy, "prometheus", "prometheus.yml")],
      ["test", "rules", join(deploy, "prometheus", "rules.test.yml")],
    ])
      execFileSync("promtool", args, { stdio: ["ignore", "pipe", "pipe"] });
  });

  it("is understood by a real Prometheus that scrapes a server", async (t) => {
    if (spawnSync("prometheus", ["--version"]).status !== 0) {
      t.skip("prometheus is not installed (Debian: apt-get install prometheus)");
      return;
    }
    await using server = await startTestServer({ dollarsPerHour: 1 });
    await work(server);
    await using prometheus = await startPrometheus(server.port);
    await prometheus.until("targets?state=active", (data) => JSON.stringify(data).includes('"health":"up"'));
    await prometheus.until(
      "query?query=rate(octavo:machine_seconds_total[10s])",
      (data) => resultsOf(data) > 0,
    );
    for (const expression of dashboardExpressions) {
      const query = expression
        .replaceAll("$__rate_interval", "10s")
        .replaceAll("[1h]", "[10s]")
        .replaceAll(/\$(?:model|job)/g, ".*");
      const data = await prometheus.get(`query?query=${encodeURIComponent(query)}`);
      const isRare = /detector|webhook|grammar|alerts_firing|p99_ratio|p99_seconds|hit_ratio/.test(query);
      if (!isRare) assert.ok(resultsOf(data) > 0, query);
    }
    const loaded = await prometheus.until(
      "rules",
      (data) => !JSON.stringify(data).includes('"health":"unknown"'),
    );
    assert.ok(!JSON.stringify(loaded).includes('"health":"err"'), JSON.stringify(loaded));
    assert.ok(
      resultsOf(await prometheus.get(`query?query=${encodeURIComponent('up{job="octavo"} == 1')}`)) > 0,
    );
  });
});

interface RunningPrometheus extends AsyncDisposable {
  get(path: string): Promise<unknown>;
  /** Asks again until the answer is as wanted; fails after half a minute. */
  until(path: string, isWanted: (data: unknown) => boolean): Promise<unknown>;
}

async function startPrometheus(target: number): Promise<RunningPrometheus> {
  const folder = mkdtempSync(join(tmpdir(), "octavo-prometheus-"));
  const port = await freePort();
  const config = join(folder, "prometheus.yml");
  writeFileSync(
    config,
    [
      "global: { scrape_interval: 1s, evaluation_interval: 1s }",
      `rule_files: [${JSON.stringify(rulesPath)}]`,
      `scrape_configs: [{ job_name: octavo, static_configs: [{ targets: ["127.0.0.1:${target}"] }] }]`,
      "",
    ].join("\n"),
  );
  const child: ChildProcess = spawn(
    "prometheus",
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let log = "";
  child.stderr?.on("data", (piece: Buffer) => (log = (log + piece.toString("utf8")).slice(-4000)));
  const exited = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const answer = (await response.json()) as { readonly status: string; readonly data: unknown };
    assert.equal(answer.status, "success", `${path}: ${JSON.stringify(answer)}`);
    return answer.data;
  };
  return {
    get,
    async until(path, isWanted) {
      let data: unknown;
      for (let attempt = 0; attempt < 150; attempt += 1) {
        data = await get(path).catch((thrown: unknown) => String(thrown));
        if (typeof data !== "string" && isWanted(data)) return data;
        await sleep(200);
      }
      return assert.fail(`${path}: ${JSON.stringify(data)}\n${log}`);
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function resultsOf(data: unknown): number {
  if (typeof data !== "object" || data === null || !("result" in data)) return 0;
  return Array.isArray(data.result) ? data.result.length : 0;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
