/** Settings that make a check small enough for the demo, as eval.yaml has them; a check that is not here has its defaults. */
const checks = {
  quantization: "{ margin: 0.1, axis_tags: [] }",
  tail: "{ prompt_edges: [128, 256], output_edges: [16, 48], part_tokens: 24, min_clusters: 5 }",
  jitter:
    "{ rounds: 6, tokens: 96, slice_ms: 25, full_slice: 4, burst_prompts: 3, burst_prompt_tokens: 1200, replays: 3 }",
  eviction: "{ difference_margin: 0.1, concurrency: 4 }",
  fairness:
    "{ requests: 40, rounds: 2, small_requests_per_minute: 480, large_requests_per_minute: 600, large_output_tokens: 8 }",
  "replica-skew": "{ margin: 0.1 }",
  "autoscaling-lag":
    "{ requests: 40, idle_requests_per_second: 6, burst_requests_per_second: 20, replica_timeout_ms: 30000 }",
  "eviction-burst":
    "{ concurrency: 8, burst_in_flight: 6, burst_prompt_tokens: 600, burst_output_tokens: 16 }",
  "traffic-drift": "{ recording: production.parquet }",
  "tenant-fairness":
    "{ requests: 40, rounds: 2, small_requests_per_minute: 480, large_requests_per_minute: 600, large_output_tokens: 8 }",
};

/**
 * eval.yaml of the demo: every check made small, with margins as wide as so few cases need. It shows them at work; it does
 * not decide a real release.
 */
export function demoConfiguration({ baseline, candidate, replica, startReplica, only }) {
  return `version: 1
name: octavo-mini in 4 bits
seed: 1
timeout: 8m
targets:
  baseline: { base_url: "${baseline}" }
  candidate: { base_url: "${candidate}" }
  replicas:
    - { base_url: "${candidate}" }
    - { base_url: "${replica}" }
  start_replica: ${JSON.stringify(startReplica)}
parameters: { max_tokens: 96 }
datasets:
  golden: { path: golden.jsonl }
evaluators: [exact_match, json_schema, evaluate_function_calling]
health:
  quality:
    - delta pass_rate(exact_match) >= -0.05
    - delta pass_rate(evaluate_function_calling) >= -0.05
  latency:
    - ratio median(ttft_ms) <= 1.5
    - p90(duration_ms) <= 10s
  throughput:
    - ratio throughput >= 0.7
  error_rate:
    - error_rate <= 0.05
checks:
${only.map((name) => `  ${name}: ${checks[name] ?? "{}"}\n`).join("")}max_check_cases: 120
`;
}
