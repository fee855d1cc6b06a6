import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { describe, it } from "node:test";
import { startTestServer } from "../testing/test-server.js";
import { oneTwoFiveBuckets, timeToFirstTokenBuckets } from "./buckets.js";
import { parseExposition } from "../testing/parse-exposition.js";
import { Registry } from "@octavo/tracing/prometheus";

describe("the text format", () => {
  it("escapes help and label values", () => {
    const registry = Registry.create().withLabels({ model_name: 'a"b\\c\nd' });
    registry.gauge("g", "back\\slash\nline", ["x"]).set(1, { x: "é" });
    assert.equal(
      registry.expose(),
      '# HELP g back\\\\slash\\nline\n# TYPE g gauge\ng{model_name="a\\"b\\\\c\\nd",x="é"} 1\n',
    );
  });

  it("writes buckets that add up and end in +Inf", () => {
    const registry = Registry.create();
    const histogram = registry.histogram("h", "help", [0.5, 1, 2]);
    for (const value of [0.5, 0.6, 1, 1.5, 99]) histogram.observe(value);
    assert.equal(
      registry.expose(),
      [
        "# HELP h help",
        "# TYPE h histogram",
        'h_bucket{le="0.5"} 1',
        'h_bucket{le="1.0"} 3',
        'h_bucket{le="2.0"} 4',
        'h_bucket{le="+Inf"} 5',
        "h_sum 102.6",
        "h_count 5",
        "",
      ].join("\n"),
    );
  });

  it("rejects what would break a scrape", () => {
    const registry = Registry.create();
    registry.counter("c_total", "help");
    assert.throws(() => registry.gauge("c_total", "again"), /registered twice/);
    assert.throws(() => registry.counter("c", "help"), /must end in _total/);
    assert.throws(() => registry.gauge("1bad", "help"), /invalid metric name/);
    assert.throws(() => registry.histogram("h", "help", [1, 1]), /bounds must rise/);
    assert.throws(() => registry.gauge("g", "help", ["a"]).set(1, { b: "x" }), /takes the labels a/);
  });

  it("never lets a counter fall", () => {
    const counter = Registry.create().counter("c_total", "help");
    counter.add(2);
    counter.add(-1);
    counter.add(Number.NaN);
    counter.raiseTo(1);
    assert.equal(counter.value(), 2);
    counter.raiseTo(5);
    assert.equal(counter.value(), 5);
  });

  it("has vLLM's bucket bounds", () => {
    assert.deepEqual(oneTwoFiveBuckets(1000), [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]);
    assert.deepEqual(oneTwoFiveBuckets(40), [1, 2, 5, 10, 20]);
    assert.equal(timeToFirstTokenBuckets.length, 22);
  });
});

/** Metrics of a server that has answered, failed, streamed and been left. */
async function busyMetrics(): Promise<string> {
  await using server = await startTestServer(
    { enableLegacyMetricNames: true, servedModelNames: ['odd"name'] },
    { cachedTokens: 1 },
  );
  await (await server.post("/v1/completions", { prompt: ["a", "b"], n: 2, max_tokens: 5 })).text();
  await (await server.post("/v1/completions", { prompt: "a", stream: true, max_tokens: 40 })).text();
  await (await server.post("/v1/completions", { prompt: "a", n: 0 })).text();
  await (await fetch(`${server.url}/${"strange".repeat(20)}`)).text();
  await (await fetch(`${server.url}/metrics`)).text();
  return (await fetch(`${server.url}/metrics`)).text();
}

describe("/metrics", () => {
  it("is sound: declared families, cumulative buckets, unique series", async () => {
    const families = parseExposition(await busyMetrics());
    assert.ok(families.size > 50);
    for (const [name, family] of families) {
      assert.ok(family.help.length > 0, `${name} has help`);
      assert.equal(
        name.endsWith("_total"),
        family.type === "counter" || name === "vllm:iteration_tokens_total",
        name,
      );
      const series = family.samples.map((sample) => sample.name + JSON.stringify(sample.labels));
      assert.equal(new Set(series).size, series.length, `${name} has unique series`);
      if (name.startsWith("vllm:")) {
        for (const { labels } of family.samples)
          assert.deepEqual([labels.model_name, labels.engine], ['odd"name', "0"]);
      }
    }
  });

  it("counts what happened", async () => {
    const families = parseExposition(await busyMetrics());
    const value = (name: string, match: Readonly<Record<string, string>> = {}): number => {
      const family = families.get(name) ?? families.get(name.replace(/_(?:count|sum)$/, ""));
      const sample = family?.samples.find(
        (one) => one.name === name && Object.entries(match).every(([key, text]) => one.labels[key] === text),
      );
      return sample?.value ?? Number.NaN;
    };
    assert.equal(value("vllm:request_success_total", { finished_reason: "length" }), 4);
    assert.equal(value("vllm:request_success_total", { finished_reason: "stop" }), 1);
    assert.equal(value("vllm:request_success_total", { finished_reason: "abort" }), 0);
    assert.equal(value("vllm:prompt_tokens_total"), 6);
    assert.equal(value("vllm:prompt_tokens_cached_total"), 3);
    assert.equal(value("vllm:prompt_tokens_by_source_total", { source: "local_compute" }), 3);
    assert.equal(value("vllm:generation_tokens_total"), 36);
    assert.equal(value("vllm:prefix_cache_queries_total"), value("vllm:gpu_prefix_cache_queries_total"));
    assert.equal(value("vllm:request_params_n_count"), 3);
    assert.equal(value("vllm:request_params_max_tokens_sum"), 50);
    assert.equal(value("vllm:time_to_first_token_seconds_count"), 3);
    assert.equal(
      value("vllm:inter_token_latency_seconds_count"),
      value("vllm:time_per_output_token_seconds_count"),
    );
    assert.equal(value("octavo:http_requests_total", { handler: "/v1/completions", status: "200" }), 2);
    assert.equal(value("octavo:http_requests_total", { handler: "/v1/completions", status: "400" }), 1);
    assert.equal(value("octavo:http_requests_total", { handler: "unmatched", status: "404" }), 1);
    assert.equal(value("octavo:http_errors_total", { code: "invalid_request" }), 1);
    assert.equal(value("octavo:http_requests_in_flight"), 1);
    assert.ok(value("process_resident_memory_bytes") > 1e6);
  });

  it("passes promtool", async (t) => {
    if (spawnSync("promtool", ["--version"]).status !== 0) {
      t.skip("promtool is not installed (Debian: apt-get install prometheus)");
      return;
    }
    const text = await busyMetrics();
    // exit code 3 is for style only, and the names it dislikes are vLLM's
    const isVllmStyle = (line: string): boolean =>
      line.includes("should not contain ':'") || line.startsWith("vllm:iteration_tokens_total non-counter");
    try {
      execFileSync("promtool", ["check", "metrics"], { input: text, stdio: ["pipe", "pipe", "pipe"] });
    } catch (thrown) {
      const { status, stderr } = thrown as { readonly status: number; readonly stderr: Buffer };
      assert.equal(status, 3, stderr.toString());
      const complaints = stderr
        .toString()
        .split("\n")
        .filter((line) => line !== "" && !isVllmStyle(line));
      assert.deepEqual(complaints, []);
    }
  });
});
