import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { loadClusterConfig, type ServeFlag } from "./load-cluster-config.js";

const flags: ReadonlyMap<string, ServeFlag> = new Map([
  ["max_model_len", { flag: "--max-model-len", takesValue: true }],
  ["enable_prefix_caching", { flag: "--enable-prefix-caching", takesValue: false }],
  ["port", { flag: "--port", takesValue: true }],
]);

const load = (deployment: string, more = "") =>
  loadClusterConfig(
    {
      name: "cluster.yaml",
      text: `version: 1\n${more}deployments:\n  - name: mini\n    model_loading_config: { model_id: m }\n${deployment}`,
      environment: {},
    },
    flags,
  );

describe("cluster.yaml", () => {
  it("has Ray Serve's defaults", () => {
    const [deployment] = load("").deployments;
    assert.ok(deployment);
    const { autoscaling, ...rest } = deployment;
    assert.deepEqual(
      { ...rest, routing: undefined, engine_kwargs: undefined, model_loading_config: undefined },
      {
        name: "mini",
        max_ongoing_requests: 5,
        max_queued_requests: -1,
        graceful_shutdown_timeout_s: 20,
        health_check_period_s: 10,
        health_check_timeout_s: 30,
        prefix_warm_up_timeout_s: 2,
        startup_timeout_s: 600,
        ray_actor_options: { num_cpus: 1 },
        routing: undefined,
        engine_kwargs: undefined,
        model_loading_config: undefined,
      },
    );
    assert.deepEqual([autoscaling.min_replicas, autoscaling.max_replicas], [1, 1]);
    const scaled = load("    autoscaling_config: { max_replicas: 4 }\n").deployments[0]?.autoscaling;
    assert.deepEqual(scaled, {
      min_replicas: 1,
      max_replicas: 4,
      target_ongoing_requests: 2,
      metrics_interval_s: 10,
      look_back_period_s: 30,
      upscaling_factor: 1,
      downscaling_factor: 1,
      upscale_delay_s: 30,
      downscale_delay_s: 600,
      aggregation_function: "mean",
    });
    assert.equal(load("    num_replicas: auto\n").deployments[0]?.autoscaling.max_replicas, 100);
  });

  it("names a driver by its kind alone, or with its settings", () => {
    assert.deepEqual(load("").driver, { kind: "local", log: "stderr", standby_process: true });
    assert.equal(load("", "driver: local\n").driver.kind, "local");
    assert.deepEqual(load("", "driver: ray\n").driver, {
      kind: "ray",
      dashboard: "http://127.0.0.1:8265",
      http_port: 8000,
      command: ["octavo"],
      poll_interval_s: 0.5,
    });
    assert.deepEqual(load("", "driver: { kind: kubernetes, namespace: llm }\n").driver, {
      kind: "kubernetes",
      namespace: "llm",
      objects: {},
      min_ready_seconds: 10,
      poll_interval_s: 1,
    });
    for (const wrong of [
      "nomad",
      "{ kind: ray, dashboard: ray://head:10001 }",
      "{ kind: ray, command: [] }",
      "{ kind: kubernetes, cores: 0-3 }",
    ])
      assert.throws(() => load("", `driver: ${wrong}\n`), {
        code: "invalid_option",
        message: /^cluster\.yaml:2:/,
      });
  });

  it("makes flags of engine_kwargs and a route of each deployment", () => {
    const config = load(
      "    engine_kwargs: { max_model_len: 512, enable_prefix_caching: false }\n",
      "gateway:\n  listen: { port: 9000 }\n",
    );
    assert.deepEqual(config.engineArgs.get("mini"), ["--max-model-len", "512", "--no-enable-prefix-caching"]);
    assert.equal(config.gateway.listen.port, 9000);
    const route = config.gateway.routes["mini"];
    assert.equal(route?.strategy, "power_of_two");
    assert.deepEqual(route?.targets, [{ pool: "mini" }]);
  });

  it("refuses mistakes with their line", () => {
    const cases: readonly (readonly [string, RegExp, string?])[] = [
      [
        "    engine_kwargs: { max_len: 5 }\n",
        /^cluster\.yaml:5:\d+: .*max_len: octavo serve has no such option$/,
      ],
      ["    engine_kwargs: { port: 5 }\n", /port: the cluster sets it for each replica$/],
      ["    engine_kwargs: { max_model_len: true }\n", /max_model_len: expected a value$/],
      ["    engine_kwargs: { enable_prefix_caching: 3 }\n", /expected true or false$/],
      ["    num_replicas: -1\n", /^cluster\.yaml:5:.*num_replicas/],
      ["    num_replica: 1\n", /num_replica: there is no such setting$/],
      [
        "    autoscaling_config: { min_replicas: 3, max_replicas: 2 }\n",
        /max_replicas: 2 is less than min_replicas, 3$/,
      ],
      ["    num_replicas: 2\n    autoscaling_config: {}\n", /contradict each other/],
      ["    routing: { strategy: quickest }\n", /deployments\[0\]\.routing\.strategy/],
      ["    routing: { strategy: prefix_aware }\n", /prefix_aware needs the section prefix$/],
      ["    max_queued_requests: -2\n", /max_queued_requests/],
      ["  - name: mini\n    model_loading_config: { model_id: m }\n", /there are two deployments mini$/],
      ["", /^cluster\.yaml:3:.*gateway\.listen\.port/, "gateway:\n  listen: { port: no }\n"],
      ["", /driver\.cores: expected cores such as 0-3,6$/, "driver: { kind: local, cores: all }\n"],
    ];
    for (const [deployment, message, more] of cases)
      assert.throws(
        () => load(deployment, more),
        { code: "invalid_option", message },
        deployment + (more ?? ""),
      );
  });
});
