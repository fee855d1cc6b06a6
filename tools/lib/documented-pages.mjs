// What the commands of documents need, and those that CI cannot run.

/** Documents whose commands run; start.md is the first that a reader meets. */
export const pages = (guides) => ["README.md", "deploy/README.md", "models/octavo-mini/README.md", ...guides];

/** Ids of the hub that pages name: octavo-mini stands in their place, in a cache without a network. */
export const hubModels = [
  "Qwen/Qwen3-0.6B",
  "Qwen/Qwen3-8B",
  "Qwen/Qwen2.5-0.5B-Instruct",
  "Qwen/Qwen2.5-7B-Instruct",
];

/** Names that the shared server answers to. */
export const sharedNames = [
  "octavo-mini",
  "Qwen/Qwen3-8B",
  "Qwen/Qwen3-0.6B",
  "judge",
  "Qwen/Qwen3-Embedding-0.6B",
];

/**
 * Commands that CI does not run, by their beginning, and why. A row that no document prints any more is an error.
 */
export const notRun = [
  ["npm start", "the setup stage and the end-to-end stage of CI start the server in this way"],
  ["npm test", "CI runs all tests"],
  ["npm run demo:", "minutes on two cores; run by hand"],
  ["npm i octavo", "tools/release/try-installed.mjs installs the packed packages"],
  ["npm install octavo webgpu", "installs from the registry, and needs a GPU"],
  ["npx octavo serve Qwen/Qwen3-8B --device webgpu", "needs a GPU"],
  [
    "node examples/browser/serve.mjs",
    "serves until it is ended; tools/browser-example.test.mjs opens the page",
  ],
  [
    "node models/octavo-mini/dist/evaluate/main.js",
    "300 cases take minutes; models/octavo-mini/evaluate has its tests",
  ],
  [
    "npx octavo bench serve --base-url http://127.0.0.1:8000 --dataset shared-prefix",
    "200 requests, eight a second, are half a minute; start.md runs a shorter one",
  ],
  [
    "prometheus ",
    "needs Prometheus; promtool checks the files in packages/server/src/metrics/deploy.test.ts",
  ],
  [
    "octavo serve meta-llama/Llama-3.1-8B-Instruct --speculative-config",
    "needs the model and a head trained with it; packages/engine/src/llm/drafting-heads.test.ts has tiny ones",
  ],
  [
    "octavo serve zai-org/GLM-4.5-Air --speculative-config",
    "needs 200 GB of weights; packages/engine/src/llm/drafting-heads.test.ts has a tiny model of the kind",
  ],
  [
    "octavo errors list --judge",
    "needs a judge beside the server that the page starts; packages/cli/src/errors/feed-models.test.ts has one",
  ],
  [
    "octavo eval score --spans ~/.local/share/octavo/traces/content",
    "needs traffic of the tenant acme; packages/cli/src/eval/recorded-spans.test.ts has some",
  ],
  ["octavo eval check fairness", "minutes of traffic; packages/evals/src/checks/fairness has its tests"],
  ["octavo eval checks", "every check in turn, many minutes; each has tests in packages/evals/src/checks"],
  [
    "octavo eval check quantization",
    "compares two servers for minutes; packages/evals/src/checks/quantization has its tests",
  ],
  [
    "octavo eval generate ruler",
    "300 prompts of up to 64,000 tokens; packages/cli/src/commands/eval-generate.test.ts makes short ones",
  ],
  ["octavo eval run --target http://127.0.0.1:8000 --dataset ruler.jsonl", "asks those prompts"],
  ["octavo eval check traffic-drift", "needs a recording of production; its own test makes one"],
  ["octavo eval check jitter --spans production.parquet", "needs a day of spans; its own test makes one"],
  ["octavo eval check jitter --spans baseline=", "needs a day of spans; its own test makes one"],
  ["octavo eval check eviction --spans", "needs spans of two servers; its own test makes them"],
  ["octavo eval worker --redis", "needs Redis; packages/cli/src/commands/eval-worker.test.ts starts one"],
  [
    "octavo eval run --target http://127.0.0.1:8000 --dataset cases.jsonl --evaluator contains --redis",
    "needs Redis, as above",
  ],
  [
    "octavo eval run --target http://127.0.0.1:8000 --dataset cases.jsonl --evaluator contains --ray",
    "needs a Ray cluster; packages/evals/src/runners/ray/ray.test.ts starts one",
  ],
  ["npm install sharp", "installs from the registry; the lockfile has it for tests"],
  [
    "octavo serve google/gemma-3",
    "needs Gemma 3 of the hub; packages/server/src/images.test.ts serves a fixture",
  ],
  [
    "octavo serve BAAI/",
    "needs an encoder of the hub; packages/server/src/embedding-model.test.ts serves fixtures",
  ],
  ["octavo serve Qwen/Qwen3-Embedding-0.6B", "needs an embedding model of the hub, as above"],
  [
    "octavo serve Qwen/Qwen3-Reranker-0.6B",
    "needs a reranker of the hub; packages/server/src/routes/encoders.test.ts serves fixtures",
  ],
  [
    "octavo serve Qwen/Qwen3-8B --tensor-parallel-size",
    "pages are tried with one thread; packages/engine/src/model/ranks.test.ts has ranks of several",
  ],
  [
    "octavo errors prove ID",
    "ID is the reader's, and a replay takes minutes; packages/cli/src/commands/errors-prove.test.ts proves one",
  ],
  [
    "octavo eval calibrate",
    "needs a model that judges; packages/cli/src/commands/eval-calibrate.test.ts scripts one",
  ],
  [
    "octavo eval distil",
    "needs a model that judges; packages/cli/src/commands/eval-distil.test.ts scripts one",
  ],
  [
    "octavo eval author",
    "needs a model that judges; packages/cli/src/commands/eval-author.test.ts scripts one",
  ],
  [
    "octavo eval improve",
    "needs a model that judges; packages/cli/src/commands/eval-author.test.ts scripts one",
  ],
  [
    "octavo serve Qwen/Qwen3-0.6B --enable-lora",
    "needs adapters; packages/server/src/routes/lora.test.ts has some",
  ],
  [
    'curl http://127.0.0.1:8000/v1/chat/completions -H \'Content-Type: application/json\' -d \'{ "model": "sql"',
    "needs that adapter",
  ],
  ["curl -X POST http://127.0.0.1:8000/v1/load_lora_adapter", "needs that adapter"],
  ["curl -X POST http://127.0.0.1:8000/v1/unload_lora_adapter", "needs that adapter"],
  [
    "octavo optimize --config optimize.yaml >",
    "needs a teacher; packages/cli/src/commands/optimize.test.ts scripts one",
  ],
  ["octavo optimize --config optimize.yaml --write", "needs a teacher, as above"],
  [
    "octavo cluster --config",
    "starts replicas until it is told to stop; packages/cli/src/commands/cluster.test.ts does",
  ],
  ["octavo stage", "waits for a server on another host; packages/cli/src/commands/stage.test.ts runs both"],
  ["octavo serve /models/Qwen3-8B --pipeline", "needs that stage"],
  ["octavo simulate", "replays minutes of traces; packages/cli/src/commands/simulate.test.ts does"],
  ["octavo chat ", "is a dialogue; packages/cli/src/commands/chat.test.ts types one"],
  ["kill -HUP", "PID is the reader's; packages/cli/src/commands/serve-reload.test.ts sends the signal"],
  ["octavo serve --otlp", "needs a collector; packages/server/src/tracing has one"],
  ["octavo eval import promptfooconfig.yaml --out evals/", "the same as in datasets.md, which runs"],
];

/** Exit codes other than 0 that say what the page does, by how the command begins. */
export const statuses = [
  // a verdict: a few cases prove nothing
  ["octavo eval check", [0, 2, 3]],
  ["octavo eval gate", [0, 2, 3]],
  ["octavo eval certify", [0, 2, 3]],
  ["octavo doctor", [0, 1]],
  ["octavo compare", [0, 2, 3]],
];
