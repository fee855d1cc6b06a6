// How long the server's event loop is ever blocked while 32 streams run, with long prompts arriving among them.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { report } from "./support/results.js";
import { closedLoop, embeddedModel, loadFromOutside, withServer } from "./support/served-model.js";

const resolutionMs = 1;
const streams = 32;

await withServer(embeddedModel, {}, async (baseUrl, llm) => {
  await loadFromOutside(closedLoop(baseUrl, streams, { numRequests: streams }));
  // The histogram holds the time between timer ticks; what exceeds the tick itself is delay.
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  const inputTokens = Math.min(1024, Math.floor(llm.engine.maxModelLen / 2));
  const { summary } = await loadFromOutside(
    closedLoop(baseUrl, streams, { inputTokens, numRequests: 4 * streams }),
  );
  delay.disable();
  const blockedMs = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  report("event-loop", [
    {
      name: "event loop blocked, longest",
      unit: "ms",
      octavo: blockedMs(delay.max),
      target: { atMost: 20 },
      details: { streams, inputTokens, outputTokensPerSecond: summary.outputTokensPerSecond },
    },
    { name: "event loop blocked, p99.9", unit: "ms", octavo: blockedMs(delay.percentile(99.9)) },
    { name: "event loop blocked, p99", unit: "ms", octavo: blockedMs(delay.percentile(99)) },
  ]);
});
