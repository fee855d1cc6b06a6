import { atLeast, atMost, type CaseFigure, type CaseMaker, type CaseSpec } from "./case-spec.js";
import type { Metric } from "./contenders/contender.js";

export const server: CaseMaker = (shape, type, { isQuick }) => {
  if (type !== "q4_0") return [];
  const p99 = (label: string, metric: Metric): CaseFigure => ({
    label,
    metric,
    unit: "ms",
    isBetter: "lower",
    peers: { "llama.cpp": atMost(0.5) },
  });
  const job = {
    kind: "server",
    clients: 16,
    requests: isQuick ? 16 : 48,
    sharedTokens: 0,
    inputTokens: isQuick ? 64 : 256,
    outputTokens: isQuick ? 16 : 64,
  } as const;
  const latencies = [p99("time to first token p99", "ttftP99Ms"), p99("longest gap p99", "maxGapP99Ms")];
  return [
    ...[0.3, 0.7].map((shareOfCapacity): CaseSpec => ({
      group: "server",
      name: `server at ${shareOfCapacity} of the slowest server's capacity`,
      shape,
      type,
      job: { ...job, requestsPerSecond: undefined },
      shareOfCapacity,
      figures: latencies,
      peers: ["llama.cpp"],
    })),
    {
      group: "server",
      name: "server, 16 open-loop clients",
      shape,
      type,
      job: { ...job, requestsPerSecond: 8 },
      figures: [
        {
          label: "output",
          metric: "serverTokensPerSecond",
          unit: "tokens/s",
          isBetter: "higher",
          peers: { "llama.cpp": atLeast(3) },
        },
        ...latencies,
      ],
      peers: ["llama.cpp"],
    },
  ];
};

/** Long prompts come while others generate: what `--max-prefill-step-ms` holds of the gaps between tokens. */
export const gaps: CaseMaker = (shape, type, { isQuick }) => {
  if (type !== "q4_0") return [];
  const maxPrefillStepMs = 200;
  const requestsPerSecond = isQuick ? 20 : 0.25;
  const gap = (label: string, metric: Metric, own: CaseFigure["own"] = []): CaseFigure => ({
    label,
    metric,
    unit: "ms",
    isBetter: "lower",
    own,
  });
  return [
    {
      group: "gaps",
      name: `gaps between tokens, ${requestsPerSecond} requests/s, steps of ${maxPrefillStepMs} ms`,
      shape,
      type,
      job: {
        kind: "server",
        clients: 16,
        requests: isQuick ? 16 : 24,
        requestsPerSecond,
        sharedTokens: 0,
        inputTokens: isQuick ? 256 : 2048,
        outputTokens: isQuick ? 16 : 96,
        maxPrefillStepMs,
      },
      figures: [
        gap("p50", "gapP50Ms"),
        gap("p99", "gapP99Ms", [atMost(maxPrefillStepMs, "octavo")]),
        gap("longest", "longestGapMs", [atMost(maxPrefillStepMs, "octavo")]),
      ],
      peers: [],
    },
  ];
};
