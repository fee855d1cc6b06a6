// What `octavo simulate` predicts of one and two replicas beside what they do, with a model whose steps take most of the time, as
// people's models' do: octavo-mini's take 0.3 ms, less than a call's way through the gateway.
import { setTimeout as sleep } from "node:timers/promises";
import {
  autoscalingSchema,
  type ClusterCosts,
  generateCalls,
  measureCosts,
  reportOf,
  type SimulatedCall,
  simulateCluster,
} from "@octavo/cluster";
import { OctavoError } from "@octavo/protocol";
import { quantile } from "@octavo/statistics";
import { askCluster, model, uncachedPrompt, ClusterProcess, warmUp } from "./cluster/cluster-process.js";
import { defaultModelFolder, modelFile } from "./cpu/models/model-file.js";
import { type BenchCase, report } from "./support/results.js";

const promptTokens = 60;
const outputTokens = 12;
/** Shares of what one replica does, request by request. */
const loads = [0.3, 0.6];
const durationS = 18;
const backlog = 24;

/** A load whose arrivals are apart, and calls that come all at once: they show what replicas do at most. */
function loadOf(replicas: number, costs: ClusterCosts, load: number | "backlog"): readonly SimulatedCall[] {
  const one =
    costs.per_request_ms +
    2 * costs.base_ms +
    promptTokens * costs.per_prompt_token_ms +
    outputTokens * (costs.base_ms + costs.per_sequence_ms);
  const requestsPerSecond = (replicas * (load === "backlog" ? 1 : load) * 1000) / one;
  const calls = generateCalls({
    phases: [{ fromS: 0, requestsPerSecond }],
    durationS,
    burstiness: 1,
    promptTokens,
    outputTokens,
    seed: replicas,
  }).map((call) => ({
    atS: load === "backlog" ? 0 : call.atS,
    promptTokens: Math.min(400, call.promptTokens),
    outputTokens: Math.min(60, call.outputTokens),
  }));
  return load === "backlog" ? calls.slice(0, backlog * replicas) : calls;
}

/** The same arrivals and lengths, asked and simulated. */
async function compare(
  url: string,
  replicas: number,
  costs: ClusterCosts,
  load: number | "backlog",
): Promise<readonly BenchCase[]> {
  const calls = loadOf(replicas, costs, load);
  const startMs = performance.now();
  const answers = await Promise.all(
    calls.map(async (call) => {
      await sleep(call.atS * 1000);
      return askCluster(url, uncachedPrompt(call.promptTokens), call.outputTokens);
    }),
  );
  const tookS = (performance.now() - startMs) / 1000;
  if (!answers.every(({ isOk }) => isOk)) throw new OctavoError("internal_error", "requests failed");
  const firsts = answers.map(({ firstMs }) => firstMs);
  const autoscaling = autoscalingSchema.parse({ min_replicas: replicas, max_replicas: replicas });
  const simulated = simulateCluster({ calls, costs, autoscaling, maxOngoing: 64, maxQueued: -1, seed: 1 });
  const predicted = reportOf(simulated, { firstTokenMs: 1000, tokenMs: 100 });
  const name = `${replicas} replica${replicas > 1 ? "s" : ""}, ${load === "backlog" ? "all at once" : `${100 * load} % load`}`;
  const caseOf = (what: string, foretold: number, measured: number): BenchCase => ({
    name: `${name}: predicted to measured ${what}`,
    unit: "×",
    octavo: foretold / measured,
    target: { atLeast: 0.85, atMost: 1.15 },
    details: { predicted: foretold, measured, numRequests: calls.length },
  });
  const throughput = caseOf("requests per second", predicted.requestsPerSecond, calls.length / tookS);
  if (load === "backlog") return [throughput];
  return [
    caseOf("first token, p50", predicted.firstTokenMs.p50, quantile(firsts, 0.5)),
    caseOf("first token, p90", predicted.firstTokenMs.p90, quantile(firsts, 0.9)),
    throughput,
  ];
}

const file = modelFile(defaultModelFolder(), "qwen2.5-0.5b", "q4_0");
await using cluster = await ClusterProcess.start(file.path);
const { url } = cluster;
await warmUp(url, 3);
const cases: BenchCase[] = [];
const alone = await measureCosts({ url, model });
for (const load of [...loads, "backlog"] as const) cases.push(...(await compare(url, 1, alone, load)));
await cluster.addReplica();
await warmUp(url, 3);
const both = await measureCosts({ url, model, replicas: ["mini-0", "mini-1"] });
for (const load of [...loads, "backlog"] as const) cases.push(...(await compare(url, 2, both, load)));
const [first, ...others] = cases;
if (first !== undefined)
  report("simulation", [{ ...first, details: { ...first.details, alone, both } }, ...others]);
