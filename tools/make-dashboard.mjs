// Writes deploy/grafana/octavo.json: `node tools/make-dashboard.mjs`. A test holds the file to what this makes.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "./lib/steps.mjs";

const engine = 'model_name=~"$model"';
const quantiles = (metric) =>
  [0.5, 0.95, 0.99].map((share) => [
    `histogram_quantile(${share}, sum by (le) (rate(${metric}_bucket{${engine}}[$__rate_interval])))`,
    `p${share * 100}`,
  ]);
const rate = (metric, labels, by) => `sum by (${by}) (rate(${metric}{${labels}}[$__rate_interval]))`;

/** Rows of panels: title, unit, queries as [expression, legend], and what else a panel is. */
const rows = [
  {
    title: "Now",
    height: 4,
    panels: [
      {
        title: "Alerts firing",
        unit: "none",
        kind: "stat",
        red: 1,
        queries: [[`sum(octavo:alerts_firing{${engine}}) or vector(0)`, "alerts"]],
      },
      {
        title: "Running",
        unit: "none",
        kind: "stat",
        queries: [[`sum(vllm:num_requests_running{${engine}})`, "requests"]],
      },
      {
        title: "Waiting",
        unit: "none",
        kind: "stat",
        queries: [[`sum(vllm:num_requests_waiting{${engine}})`, "requests"]],
      },
      {
        title: "KV cache in use",
        unit: "percentunit",
        kind: "stat",
        red: 0.9,
        queries: [[`max(vllm:kv_cache_usage_perc{${engine}})`, "share"]],
      },
      {
        title: "Tokens a second",
        unit: "none",
        kind: "stat",
        queries: [[`sum(rate(vllm:generation_tokens_total{${engine}}[$__rate_interval]))`, "tokens"]],
      },
      {
        title: "Idle",
        unit: "percentunit",
        kind: "stat",
        queries: [
          [
            'sum(rate(octavo:machine_seconds_total{job=~"$job",state="idle"}[1h])) / sum(rate(octavo:machine_seconds_total{job=~"$job"}[1h]))',
            "share",
          ],
        ],
      },
    ],
  },
  {
    title: "Latency",
    panels: [
      { title: "Time to first token", unit: "s", queries: quantiles("vllm:time_to_first_token_seconds") },
      { title: "Time between tokens", unit: "s", queries: quantiles("vllm:inter_token_latency_seconds") },
      { title: "Whole requests", unit: "s", queries: quantiles("vllm:e2e_request_latency_seconds") },
      {
        title: "Waiting to be admitted",
        unit: "s",
        queries: [
          ...quantiles("vllm:request_queue_time_seconds"),
          [`max(octavo:oldest_waiting_seconds{${engine}})`, "oldest now"],
        ],
      },
    ],
  },
  {
    title: "Why tokens are slow",
    panels: [
      {
        title: "Seconds lost in slow gaps, by reason",
        unit: "s",
        stacked: true,
        queries: [[rate("octavo:slow_gap_seconds_total", engine, "reason"), "{{reason}}"]],
      },
      {
        title: "99th percentile of gaps, as the detector sees it",
        unit: "s",
        queries: [[`max by (window) (octavo:inter_token_latency_p99_seconds{${engine}})`, "{{window}}"]],
      },
      {
        title: "Alerts",
        unit: "none",
        stacked: true,
        queries: [
          [`sum by (detector, reason) (octavo:alerts_firing{${engine}})`, "{{detector}}: {{reason}}"],
        ],
      },
      { title: "Steps", unit: "s", queries: quantiles("octavo:step_duration_seconds") },
    ],
  },
  {
    title: "Work",
    panels: [
      {
        title: "Requests finished",
        unit: "reqps",
        stacked: true,
        queries: [[rate("vllm:request_success_total", engine, "finished_reason"), "{{finished_reason}}"]],
      },
      {
        title: "Tokens",
        unit: "none",
        queries: [
          [`sum(rate(vllm:prompt_tokens_total{${engine}}[$__rate_interval]))`, "prompt"],
          [`sum(rate(vllm:prompt_tokens_cached_total{${engine}}[$__rate_interval]))`, "of it cached"],
          [`sum(rate(vllm:generation_tokens_total{${engine}}[$__rate_interval]))`, "generated"],
        ],
      },
      {
        title: "Requests in the engine",
        unit: "none",
        queries: [
          [`sum(vllm:num_requests_running{${engine}})`, "running"],
          [`sum(vllm:num_requests_waiting{${engine}})`, "waiting"],
        ],
      },
      {
        title: "Preemptions",
        unit: "none",
        queries: [[`sum(rate(vllm:num_preemptions_total{${engine}}[$__rate_interval]))`, "a second"]],
      },
    ],
  },
  {
    title: "Cache",
    panels: [
      {
        title: "Blocks",
        unit: "none",
        stacked: true,
        queries: [[`sum by (state) (octavo:kv_cache_blocks{${engine}})`, "{{state}}"]],
      },
      {
        title: "Prefix cache hits",
        unit: "percentunit",
        queries: [
          [
            `sum(rate(vllm:prefix_cache_hits_total{${engine}}[$__rate_interval])) / sum(rate(vllm:prefix_cache_queries_total{${engine}}[$__rate_interval]))`,
            "now",
          ],
          [`max by (window) (octavo:prefix_cache_hit_ratio{${engine}})`, "detector, {{window}}"],
        ],
      },
      {
        title: "Cached blocks evicted",
        unit: "none",
        queries: [
          [`sum(rate(octavo:kv_cache_blocks_evicted_total{${engine}}[$__rate_interval]))`, "a second"],
        ],
      },
    ],
  },
  {
    title: "Tenants and costs",
    panels: [
      {
        title: "A tenant's 99th percentile over that of all",
        unit: "none",
        queries: [[`max by (tenant) (octavo:tenant_latency_p99_ratio{${engine}})`, "{{tenant}}"]],
      },
      {
        title: "Machines busy, by tenant",
        unit: "percentunit",
        stacked: true,
        queries: [[rate("octavo:metered_gpu_seconds_total", 'job=~"$job"', "tenant"), "{{tenant}}"]],
      },
      {
        title: "Machines busy, by feature",
        unit: "percentunit",
        stacked: true,
        queries: [[rate("octavo:metered_gpu_seconds_total", 'job=~"$job"', "feature"), "{{feature}}"]],
      },
      {
        title: "Dollars an hour, by what the time went to",
        unit: "currencyUSD",
        stacked: true,
        queries: [[`3600 * ${rate("octavo:machine_dollars_total", 'job=~"$job"', "state")}`, "{{state}}"]],
      },
      {
        title: "Dollars an hour of requests, by feature",
        unit: "currencyUSD",
        stacked: true,
        queries: [
          [`3600 * ${rate("octavo:metered_dollars_total", 'job=~"$job"', "feature")}`, "{{feature}}"],
        ],
      },
      {
        title: "Dollars per million tokens, idle time included",
        unit: "currencyUSD",
        queries: [
          [
            '1e6 * sum(rate(octavo:machine_dollars_total{job=~"$job"}[1h])) / sum(rate(octavo:metered_tokens_total{job=~"$job"}[1h]))',
            "all tokens",
          ],
        ],
      },
    ],
  },
  {
    title: "HTTP and process",
    panels: [
      {
        title: "Answers",
        unit: "reqps",
        stacked: true,
        queries: [[rate("octavo:http_requests_total", 'job=~"$job"', "status"), "{{status}}"]],
      },
      {
        title: "Errors, by code",
        unit: "reqps",
        stacked: true,
        queries: [[rate("octavo:http_errors_total", 'job=~"$job"', "code"), "{{code}}"]],
      },
      {
        title: "Connections and clients that left",
        unit: "none",
        queries: [
          ['sum(octavo:http_connections{job=~"$job"})', "open"],
          [
            'sum(rate(octavo:http_client_disconnects_total{job=~"$job"}[$__rate_interval]))',
            "left, a second",
          ],
        ],
      },
      {
        title: "Evidence that was not delivered",
        unit: "none",
        queries: [
          [
            'sum(rate(octavo:trace_spans_total{job=~"$job",outcome!="delivered"}[$__rate_interval]))',
            "spans",
          ],
          [
            'sum(rate(octavo:metering_records_total{job=~"$job",outcome="dropped"}[$__rate_interval]))',
            "metering records",
          ],
          [
            'sum(rate(octavo:alert_webhook_total{job=~"$job",outcome!="delivered"}[$__rate_interval]))',
            "alerts",
          ],
        ],
      },
      {
        title: "CPU",
        unit: "none",
        queries: [['rate(process_cpu_seconds_total{job=~"$job"}[$__rate_interval])', "{{instance}}"]],
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: [
          ['process_resident_memory_bytes{job=~"$job"}', "{{instance}}"],
          ['nodejs_heap_size_used_bytes{job=~"$job"}', "{{instance}} heap"],
        ],
      },
      {
        title: "Event loop delay, 99th percentile",
        unit: "s",
        queries: [['nodejs_eventloop_lag_p99_seconds{job=~"$job"}', "{{instance}}"]],
      },
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
    for (const [index, panel] of given.entries()) {
      const gridPos = { h: height, w, x: (index % perLine) * w, y: y + Math.floor(index / perLine) * height };
      panels.push(panelOf(panel, gridPos, id++));
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
export const dashboardText = () => `${JSON.stringify(dashboard(), undefined, 2)}\n`;

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(dashboardPath, dashboardText());
