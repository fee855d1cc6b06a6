import { existsSync } from "node:fs";
import { join } from "node:path";
import { filesBelow, root } from "./steps.mjs";

/**
 * Tests that take more than six seconds of processor time, slowest first: what `npm test` leaves out and `npm run test:all` begins
 * with, so that no core is left with one of them at the end.
 */
export const slowTests = [
  "bench/dist/planted-load/plants",
  "bench/dist/planted-faults/plants",
  "packages/cli/dist/commands/eval.test",
  "packages/cluster/dist/drivers/ray/",
  "packages/cli/dist/commands/cluster",
  "packages/cli/dist/commands/errors-prove",
  "packages/engine/dist/model/native-schedules",
  "packages/engine/dist/model/ranks",
  "packages/engine/dist/pipeline/pipeline",
  "packages/kernels/dist/cpu/ranked-backend",
  "packages/studio/dist/quantize/quality",
  "packages/studio/dist/quantize/gguf/llama-cpp-live",
  "packages/engine/dist/llm/devices",
  "packages/evals/dist/runners/bullmq/bullmq",
  "packages/cli/dist/eval/recorded-spans",
  "packages/server/dist/routes/chat-tools",
  "packages/evals/dist/runners/worker-threads/thread-pool",
  "tools/fuzz",
  "tools/browser-example",
  "packages/kernels-webgpu/dist/same-bits",
  "packages/cli/dist/commands/gateway",
  "packages/server/dist/real-model",
  "packages/server/dist/system-fingerprint",
  "packages/engine/dist/admission/crash-journal",
  "packages/text/dist/tokenizer/unicode-normalization",
  "packages/studio/dist/quantize/gguf/ggml-types",
  "packages/evals/dist/checks/traffic-drift/check",
  "packages/evals/dist/runners/batch-jobs/batch-jobs",
  "packages/kernels-webgpu/dist/webgpu-backend",
  "packages/evals/dist/checks/tail/check",
  "packages/kernels/dist/cpu/cpu-backend",
  "packages/server/dist/real-world-schemas",
  "packages/engine/dist/model/reference-oracle",
  "packages/cli/dist/program",
  "packages/server/dist/detectors/detectors",
  "packages/engine/dist/model/webgpu-schedules",
  "packages/engine/dist/model/webgpu-oracle",
  "packages/text/dist/structured/json-schema/schema-walks",
  "packages/engine/dist/model/native-oracle",
  "packages/server/dist/routes/access",
  "packages/cli/dist/commands/eval-author",
  "packages/evals/dist/datasets/jsonl",
  "packages/cli/dist/commands/compare",
  "packages/engine/dist/testing/simulation/simulation",
  "packages/cli/dist/commands/simulate",
  "packages/server/dist/stream-equality",
  "packages/text/dist/parsers/agreement",
  "packages/cli/dist/commands/eval-distil",
  "packages/server/dist/metrics/deploy",
  "packages/text/dist/structured/json-schema/test-suite",
  "packages/cli/dist/commands/optimize",
  "packages/cli/dist/costs/costs",
  "packages/cli/dist/commands/errors",
  "packages/evals/dist/checks/replica-skew/check",
  "packages/engine/dist/step/schedule",
  "packages/evals/dist/checks/jitter/check",
  "packages/evals/dist/checks/quantization/check",
];

/**
 * Tests of what differs between Nodes: sockets, streams, threads, processes, native code, modules, the text engine. Routes that only read
 * and write other JSON over the same sockets are left out, and the GPU: it is an addon of Node-API like the kernels.
 */
export const runtimeTests = [
  "packages/artifacts/dist/hub/",
  "packages/cli/dist/program",
  "packages/engine/dist/admission/crash-journal",
  "packages/engine/dist/engine-abort",
  "packages/engine/dist/constraints/",
  "packages/engine/dist/index",
  "packages/engine/dist/llm/generation",
  "packages/engine/dist/llm/llm",
  "packages/engine/dist/llm/load-from-hub",
  "packages/engine/dist/model/native-oracle",
  "packages/evals/dist/runners/worker-threads/",
  "packages/evals/dist/targets/",
  "packages/kernels/dist/machine/",
  "packages/kernels/dist/cpu/lifecycle",
  "packages/loadtest/",
  "packages/protocol/",
  "packages/server/dist/drain",
  "packages/server/dist/http/",
  "packages/server/dist/routes/access",
  "packages/server/dist/routes/chat-stream",
  "packages/server/dist/routes/chat.test",
  "packages/server/dist/routes/completions",
  "packages/server/dist/routes/errors",
  "packages/server/dist/routes/fault-injection",
  "packages/server/dist/routes/messages",
  "packages/server/dist/routes/requests",
  "packages/server/dist/routes/responses",
  "packages/text/dist/template/",
  "packages/text/dist/tokenizer/",
  "packages/tracing/",
];

/** Paths of all tests as they run, from the root: compiled, slow ones first. */
export function testFiles() {
  const compiled = ["packages", "models", "bench"]
    .flatMap((folder) => filesBelow(folder, (path) => path.endsWith(".test.ts")))
    .map(compiledPath);
  const all = [...compiled, ...filesBelow("tools", (path) => path.endsWith(".test.mjs"))];
  return all.toSorted((one, other) => rank(one) - rank(other));
}

export const isSlow = (path) => slowTests.some((slow) => path.startsWith(slow));

function rank(path) {
  const index = slowTests.findIndex((slow) => path.startsWith(slow));
  return index < 0 ? slowTests.length : index;
}

/** Where tsc puts a source: `src` is the root of a package, the folder itself that of a model. */
function compiledPath(source) {
  const moved = source.startsWith("models/")
    ? source.replace(/^(models\/[^/]+)\//, "$1/dist/")
    : source.replace("/src/", "/dist/");
  return moved.replace(/\.ts$/, ".js");
}

export const isCompiled = (path) => existsSync(join(root, path));
