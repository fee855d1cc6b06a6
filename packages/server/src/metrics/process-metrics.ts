import { readdir } from "node:fs/promises";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { Registry } from "@octavo/tracing/prometheus";

/** Memory, CPU and event loop of this process under the usual names of Prometheus clients. Disposing stops the sampling. */
export function registerProcessMetrics(registry: Registry): Disposable {
  const cpu = registry.counter("process_cpu_seconds_total", "User and system CPU time, in seconds.");
  const { start, resident, heapUsed, heapTotal, external, lag, lagMax, files } = registry.gauges({
    start: ["process_start_time_seconds", "Start of the process, in seconds since the epoch."],
    resident: ["process_resident_memory_bytes", "Resident memory, in bytes."],
    heapUsed: ["nodejs_heap_size_used_bytes", "V8 heap in use, in bytes."],
    heapTotal: ["nodejs_heap_size_total_bytes", "V8 heap reserved, in bytes."],
    external: ["nodejs_external_memory_bytes", "Memory of buffers and native objects, in bytes."],
    lag: ["nodejs_eventloop_lag_seconds", "Event loop delay since the last scrape, mean, in seconds."],
    lagMax: [
      "nodejs_eventloop_lag_max_seconds",
      "Event loop delay since the last scrape, maximum, in seconds.",
    ],
    files: ["process_open_fds", "Open file descriptors; 0 where the system does not report them."],
  });
  const lagQuantiles = [50, 90, 99].map((percentile) => {
    const help = `Event loop delay, p${percentile}, in seconds.`;
    return [percentile, registry.gauge(`nodejs_eventloop_lag_p${percentile}_seconds`, help)] as const;
  });
  registry.gauge("nodejs_version_info", "Node's version.", ["version"]).set(1, { version: process.version });
  start.set(performance.timeOrigin / 1000);

  const resolutionMs = 10;
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  // the histogram holds timer periods; what exceeds the period is the delay
  const delaySeconds = (nanoseconds: number): number =>
    Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - resolutionMs / 1000) : 0;

  registry.onCollect(() => {
    const memory = process.memoryUsage();
    const usage = process.cpuUsage();
    cpu.raiseTo((usage.user + usage.system) / 1e6);
    resident.set(memory.rss);
    heapUsed.set(memory.heapUsed);
    heapTotal.set(memory.heapTotal);
    external.set(memory.external);
    lag.set(delaySeconds(delay.mean));
    lagMax.set(delay.count === 0 ? 0 : delaySeconds(delay.max));
    for (const [percentile, gauge] of lagQuantiles)
      gauge.set(delay.count === 0 ? 0 : delaySeconds(delay.percentile(percentile)));
    delay.reset();
    // the count is one scrape old: reading the folder must not block the event loop
    void readdir("/proc/self/fd").then(
      (entries) => files.set(entries.length),
      () => files.set(0),
    );
  });
  return { [Symbol.dispose]: () => void delay.disable() };
}
