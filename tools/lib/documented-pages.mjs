// What the commands of documents need, and those that CI cannot run.

/** Documents whose commands run; start.md is the first that a reader meets. */
export const pages = (guides) => ["README.md", "deploy/README.md", "models/octavo-mini/README.md", ...guides];

const mini = "models/octavo-mini";
const tiny = "packages/artifacts/fixtures";

/** Ids of the hub that pages name, and the folders that stand in their place, in a cache without a network. */
export const hubModels = {
  "Qwen/Qwen3-0.6B": mini,
  "Qwen/Qwen3-8B": mini,
  "Qwen/Qwen2.5-0.5B-Instruct": mini,
  "Qwen/Qwen2.5-7B-Instruct": mini,
  "BAAI/bge-m3": `${tiny}/embeddings/xlm-roberta`,
  "Qwen/Qwen3-Embedding-0.6B": `${tiny}/embeddings/qwen3-embedding`,
  "BAAI/bge-reranker-v2-m3": `${tiny}/rerankers/xlm-roberta-cross`,
  "Qwen/Qwen3-Reranker-0.6B": `${tiny}/rerankers/qwen3-yes-no`,
  "google/gemma-3-4b-it": `${tiny}/images/gemma3`,
  "meta-llama/Llama-3.1-8B-Instruct": `${tiny}/drafting/llama`,
};

/** Names that the shared server answers to. */
export const sharedNames = [
  "octavo-mini",
  "Qwen/Qwen3-8B",
  "Qwen/Qwen3-0.6B",
  "judge",
  "Qwen/Qwen3-Embedding-0.6B",
];

/** Commands that run until they are ended, and what they say once they are there. */
export const running = [
  ["prometheus ", /Server is ready to receive web requests/],
  ["octavo cluster --config", /octavo cluster: http/],
  ["octavo stage", /octavo stage: \S+:\d+\n/],
  ["octavo eval worker", /taking jobs/],
  ["node examples/browser/serve.mjs", /http:\/\/127\.0\.0\.1:\d+\n/],
];

/** Programs beside Node that a command needs. */
export const needed = [
  ["prometheus ", "prometheus"],
  ["octavo eval worker --redis", "redis-server"],
  [
    "octavo eval run --target http://127.0.0.1:8000 --dataset cases.jsonl --evaluator contains --redis",
    "redis-server",
  ],
];

/** What the reader types into a command. */
export const inputs = [
  ["octavo chat", "Hello!\n"],
  ["octavo eval author", "f\np\nq\n"],
];

/**
 * Commands that CI does not run, by their beginning, and why. A row that no document prints any more is an error.
 */
export const notRun = [
  ["npm start", "tools/end-to-end.mjs starts the server in this way, with flags"],
  ["npm test", "CI runs all tests"],
  ["npm i octavo", "tools/release/try-installed.mjs installs the packed packages"],
  ["npm install octavo webgpu", "installs from the registry, and needs a GPU"],
  ["npm install sharp", "installs from the registry; the lockfile has it for tests"],
  ["npx octavo serve Qwen/Qwen3-8B --device webgpu", "needs a GPU"],
  ["npm run demo:", "minutes on two cores; run by hand"],
  ["octavo eval check fairness", "minutes of traffic; packages/evals/src/checks/fairness has its tests"],
  [
    "octavo errors prove ID",
    "starts a dozen servers and replays on each, minutes; packages/cli/src/commands/errors-prove.test.ts proves one",
  ],
  ["octavo eval checks", "every check in turn, many minutes; each has tests in packages/evals/src/checks"],
  [
    "node models/octavo-mini/dist/evaluate/main.js",
    "300 cases take minutes; models/octavo-mini/evaluate has its tests",
  ],
  [
    "octavo eval run --target http://127.0.0.1:8000 --dataset cases.jsonl --evaluator contains --ray",
    "needs a Ray cluster; packages/evals/src/runners/ray/ray.test.ts starts one",
  ],
];

/** Exit codes other than 0 that say what the page does, by how the command begins. */
export const statuses = [
  // a verdict: a few cases prove nothing
  ["octavo eval check", [0, 2, 3]],
  ["octavo eval gate", [0, 2, 3]],
  ["octavo eval certify", [0, 2, 3]],
  ["octavo eval improve", [0, 2, 3]],
  ["octavo errors prove", [0, 2, 3]],
  ["octavo optimize", [0, 2]],
  ["octavo doctor", [0, 1]],
  ["octavo compare", [0, 2, 3]],
];
