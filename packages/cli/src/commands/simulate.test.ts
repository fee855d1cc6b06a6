import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runOctavo, serveOctavo } from "../testing/run-octavo.js";

describe("octavo simulate", () => {
  let folder: string;
  let costs: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "octavo-simulate-"));
    costs = join(folder, "costs.json");
    await writeFile(costs, JSON.stringify({ base_ms: 5, per_prompt_token_ms: 0.1, per_sequence_ms: 0.2 }));
  });
  after(() => rm(folder, { recursive: true }));

  it("says cost, attainment and the knee of a generated load", async () => {
    const json = join(folder, "out.json");
    const args = [
      "--costs",
      costs,
      "--phases",
      "0:4",
      "--duration",
      "60",
      "--price",
      "1.5",
      "--knee",
      "--json",
      json,
    ];
    const { code, out, err } = await runOctavo(["simulate", ...args]);
    assert.equal(code, 0, err);
    assert.match(out, /^requests +2\d\d, 0 refused/m);
    assert.match(out, /^cost +\$0\.02\d\d$/m);
    assert.match(out, /^within objective +100\.00 %/m);
    assert.match(out, /^knee +[\d.]+ requests per second keep 99 %/m);
    const written = JSON.parse(await readFile(json, "utf8")) as {
      readonly knee: { readonly factor: number };
    };
    assert.ok(written.knee.factor > 1);
  });

  it("plays a trace through a deployment of cluster.yaml", async () => {
    const trace = join(folder, "azure.csv");
    const rows = Array.from(
      { length: 100 },
      (_, at) => `2024-01-01 00:00:${String(at % 60).padStart(2, "0")}.0000000,50,20`,
    );
    await writeFile(trace, ["TIMESTAMP,ContextTokens,GeneratedTokens", ...rows].join("\n"));
    const config = join(folder, "cluster.yaml");
    const autoscaling =
      "autoscaling_config: { max_replicas: 3, upscale_delay_s: 1, look_back_period_s: 2, metrics_interval_s: 1 }";
    await writeFile(
      config,
      `version: 1\ndeployments:\n  - name: mini\n    model_loading_config: { model_id: m }\n    max_ongoing_requests: 1\n    ${autoscaling}\n`,
    );
    const { code, out, err } = await runOctavo([
      "simulate",
      "--costs",
      costs,
      "--trace",
      trace,
      "--config",
      config,
    ]);
    assert.equal(code, 0, err);
    assert.match(out, /^requests +100, 0 refused/m);
  });

  it("measures a replica's step costs", async () => {
    const server = await serveOctavo("--max-model-len", "512");
    const measured = join(folder, "measured.json");
    const args = ["--measure", server.url, "--write-costs", measured, "--duration", "5"];
    const { code, err } = await runOctavo(["simulate", ...args]);
    await server.stop();
    assert.equal(code, 0, err);
    const written = JSON.parse(await readFile(measured, "utf8")) as Readonly<Record<string, number>>;
    assert.ok((written["base_ms"] ?? 0) + (written["per_sequence_ms"] ?? 0) > 0, JSON.stringify(written));
  });

  it("refuses what is not there or makes no sense", async () => {
    for (const [args, message] of [
      [[], /give --costs FILE or --measure URL/],
      [["--costs", join(folder, "none.json")], /none\.json: .*no such file/],
      [["--costs", costs, "--phases", "5:1,2:3"], /--phases: expected rising seconds/],
      [["--measure", "http://127.0.0.1:9"], /target_unreachable/],
    ] as const) {
      const { code, err } = await runOctavo(["simulate", ...args]);
      assert.equal(code, 1);
      assert.match(err, message);
    }
  });
});
