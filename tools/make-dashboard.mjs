// Writes deploy/grafana/octavo.json: `node tools/make-dashboard.mjs`. A test fails when the two differ.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./lib/steps.mjs";

const engine = 'model_name=~"$model"';
const job = 'job=~"$job"';
const sum = (metric, labels = engine) => `sum(${metric}{${labels}})`;
const rate = (metric, labels = engine, grouping = "") =>
  `sum${grouping}(rate(${metric}{${labels}}[$__rate_interval]))`;
const by = (label) => ` by (${label}) `;
/** One line for each value of a label. */
const rateBy = (metric, labels, label) => [[rate(metric, labels, by(label)), `{{${label}}}`]];
const quantiles = (metric) =>
  [0.5, 0.95, 0.99].map((share) => [
    `histogram_quantile(${share}, ${rate(`${metric}_bucket`, engine, by("le"))})`,
    `p${share * 100}`,
  ]);
const maxBy = (label, metric) => [`max by (${label}) (${metric}{${engine}})`, `{{${label}}}`];

/** A panel: queries are pairs of expression and legend. */
const panel = (title, unit, queries, rest = {}) => ({ title, unit, queries, ...rest });
const inStack = { stacked: true };
const stat = { kind: "stat" };

const rows = [
  {
    title: "Now",
    height: 4,
    panels: [
      panel("Alerts firing", "none", [[`${sum("octavo:alerts_firing")} or vector(0)`, "alerts"]], {
        ...stat,
        red: 1,
      }),
      panel("Running", "none", [[sum("vllm:num_requests_running"), "requests"]], stat),
      panel("Waiting", "none", [[sum("vllm:num_requests_waiting"), "requests"]], stat),
      panel("KV cache in use", "percentunit", [[`max(vllm:kv_cache_usage_perc{${engine}})`, "share"]], {
        ...stat,
        red: 0.9,
      }),
      panel("Tokens a second", "none", [[rate("vllm:generation_tokens_total"), "tokens"]], stat),
      panel(
        "Idle",
        "percentunit",
        [
          [
            `sum(rate(octavo:machine_seconds_total{${job},state="idle"}[1h])) / sum(rate(octavo:machine_seconds_total{${job}}[1h]))`,
            "share",
          ],
        ],
        stat,
      ),
    ],
  },
  {
    title: "Latency",
    panels: [
      panel("Time to first token", "s", quantiles("vllm:time_to_first_token_seconds")),
      panel("Time between tokens", "s", quantiles("vllm:inter_token_latency_seconds")),
      panel("Whole requests", "s", quantiles("vllm:e2e_request_latency_seconds")),
      panel("Waiting to be admitted", "s", [
        ...quantiles("vllm:request_queue_time_seconds"),
        [`max(octavo:oldest_waiting_seconds{${engine}})`, "oldest now"],
      ]),
    ],
  },
  {
    title: "Why tokens are slow",
    panels: [
      panel(
        "Seconds lost in slow gaps, by reason",
        "s",
        rateBy("octavo:slow_gap_seconds_total", engine, "reason"),
        inStack,
      ),
      panel("99th percentile of gaps, as the detector sees it", "s", [
        maxBy("window", "octavo:inter_token_latency_p99_seconds"),
      ]),
      panel(
        "Alerts",
        "none",
        [[`sum by (detector, reason) (octavo:alerts_firing{${engine}})`, "{{detector}}: {{reason}}"]],
        inStack,
      ),
      panel("Steps", "s", quantiles("octavo:step_duration_seconds")),
    ],
  },
  {
    title: "Work",
    panels: [
      panel(
        "Requests finished",
        "reqps",
        rateBy("vllm:request_success_total", engine, "finished_reason"),
        inStack,
      ),
      panel("Tokens", "none", [
        [rate("vllm:prompt_tokens_total"), "prompt"],
        [rate("vllm:prompt_tokens_cached_total"), "of it cached"],
        [rate("vllm:generation_tokens_total"), "generated"],
      ]),
      panel("Requests in the engine", "none", [
        [sum("vllm:num_requests_running"), "running"],
        [sum("vllm:num_requests_waiting"), "waiting"],
      ]),
      panel("Preemptions", "none", [[rate("vllm:num_preemptions_total"), "a second"]]),
    ],
  },
  {
    title: "Cache",
    panels: [
      panel("Blocks", "none", [[`sum by (state) (octavo:kv_cache_blocks{${engine}})`, "{{state}}"]], inStack),
      panel("Prefix cache hits", "percentunit", [
        [`${rate("vllm:prefix_cache_hits_total")} / ${rate("vllm:prefix_cache_queries_total")}`, "now"],
        [`max by (window) (octavo:prefix_cache_hit_ratio{${engine}})`, "detector, {{window}}"],
      ]),
      panel("Cached blocks evicted", "none", [[rate("octavo:kv_cache_blocks_evicted_total"), "a second"]]),
    ],
  },
  {
    title: "Tenants and costs",
    panels: [
      panel("A tenant's 99th percentile over that of all", "none", [
        maxBy("tenant", "octavo:tenant_latency_p99_ratio"),
      ]),
      panel(
        "Machines busy, by tenant",
        "percentunit",
        rateBy("octavo:metered_gpu_seconds_total", job, "tenant"),
        inStack,
      ),
      panel(
        "Machines busy, by feature",
        "percentunit",
        rateBy("octavo:metered_gpu_seconds_total", job, "feature"),
        inStack,
      ),
      panel(
        "Dollars an hour, by what the time went to",
        "currencyUSD",
        [[`3600 * ${rate("octavo:machine_dollars_total", job, by("state"))}`, "{{state}}"]],
        inStack,
      ),
      panel(
        "Dollars an hour of requests, by feature",
        "currencyUSD",
        [[`3600 * ${rate("octavo:metered_dollars_total", job, by("feature"))}`, "{{feature}}"]],
        inStack,
      ),
      panel("Dollars per million tokens, idle time included", "currencyUSD", [
        [
          `1e6 * sum(rate(octavo:machine_dollars_total{${job}}[1h])) / sum(rate(octavo:metered_tokens_total{${job}}[1h]))`,
          "all tokens",
        ],
      ]),
    ],
  },
  {
    title: "HTTP and process",
    panels: [
      panel("Answers", "reqps", rateBy("octavo:http_requests_total", job, "status"), inStack),
      panel("Errors, by code", "reqps", rateBy("octavo:http_errors_total", job, "code"), inStack),
      panel("Connections and clients that left", "none", [
        [sum("octavo:http_connections", job), "open"],
        [rate("octavo:http_client_disconnects_total", job), "left, a second"],
      ]),
      panel("Evidence that was not delivered", "none", [
        [rate("octavo:trace_spans_total", `${job},outcome!="delivered"`), "spans"],
        [rate("octavo:metering_records_total", `${job},outcome="dropped"`), "metering records"],
        [rate("octavo:alert_webhook_total", `${job},outcome!="delivered"`), "alerts"],
      ]),
      panel("CPU", "none", [[`rate(process_cpu_seconds_total{${job}}[$__rate_interval])`, "{{instance}}"]]),
      panel("Memory", "bytes", [
        [`process_resident_memory_bytes{${job}}`, "{{instance}}"],
        [`nodejs_heap_size_used_bytes{${job}}`, "{{instance}} heap"],
      ]),
      panel("Event loop delay, 99th percentile", "s", [
        [`nodejs_eventloop_lag_p99_seconds{${job}}`, "{{instance}}"],
      ]),
    ],
  },
];

const datasource = { type: "prometheus", uid: "${datasource}" };

function panelOf({ title, unit, queries, kind = "timeseries", stacked = false, red }, gridPos, id) {
  const steps = [
    { color: "green", value: null },
    ...(red === undefined ? [] : [{ color: "red", value: red }]),
  ];
  const custom = {
    drawStyle: "line",
    fillOpacity: stacked ? 30 : 5,
    lineWidth: 1,
    showPoints: "never",
    stacking: { mode: stacked ? "normal" : "none" },
  };
  return {
    id,
    type: kind,
    title,
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        thresholds: { mode: "absolute", steps },
        ...(kind === "stat" ? {} : { custom }),
      },
      overrides: [],
    },
    options:
      kind === "stat"
        ? { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "value", graphMode: "area" }
        : { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource,
      expr,
      legendFormat,
      editorMode: "code",
      range: true,
    })),
  };
}

function variable(name, label, metric) {
  const query = `label_values(${metric}, ${name === "model" ? "model_name" : name})`;
  return {
    name,
    label,
    type: "query",
    datasource,
    query: { query, refId: name },
    definition: query,
    refresh: 2,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: "All", value: "$__all" },
  };
}

export function dashboard() {
  const panels = [];
  let id = 1;
  let y = 0;
  for (const { title, panels: given, height = 8 } of rows) {
    panels.push({
      id: id++,
      type: "row",
      title,
      collapsed: false,
      gridPos: { h: 1, w: 24, x: 0, y },
      panels: [],
    });
    y += 1;
    const perLine =
      given[0].kind === "stat" ? given.length : Math.min(given.length, given.length % 3 === 0 ? 3 : 4);
    const w = 24 / perLine;
    for (const [index, content] of given.entries()) {
      const gridPos = { h: height, w, x: (index % perLine) * w, y: y + Math.floor(index / perLine) * height };
      panels.push(panelOf(content, gridPos, id++));
    }
    y += Math.ceil(given.length / perLine) * height;
  }
  return {
    uid: "octavo",
    title: "Octavo",
    description: "What the engine does, why tokens are slow, and what it costs.",
    tags: ["octavo", "llm"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "30s",
    time: { from: "now-3h", to: "now" },
    timezone: "browser",
    graphTooltip: 1,
    templating: {
      list: [
        { name: "datasource", label: "Prometheus", type: "datasource", query: "prometheus", current: {} },
        variable("job", "Job", "octavo:machine_seconds_total"),
        variable("model", "Model", "vllm:num_requests_running"),
      ],
    },
    annotations: {
      list: [
        {
          name: "Alerts",
          datasource,
          enable: true,
          iconColor: "red",
          expr: 'sum by (detector, reason) (octavo:alerts_firing{model_name=~"$model"}) > 0',
          titleFormat: "{{detector}}: {{reason}}",
        },
      ],
    },
    links: [],
    panels,
  };
}

export const dashboardPath = join(root, "deploy", "grafana", "octavo.json");

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(dashboardPath, `${JSON.stringify(dashboard(), undefined, 2)}\n`);
