import type { MeteringRecord } from "@octavo/protocol";
import { BoundedLabels, noLabel } from "../metrics/bounded-labels.js";
import type { Registry } from "../metrics/registry.js";
import type { MachineTime } from "./machine-clock.js";

const callerLabels = ["model", "tenant", "feature"] as const;

/** What requests and the machine cost, as counters. */
export class MeterMetrics {
  readonly #labels: BoundedLabels;
  readonly #requests;
  readonly #gpuSeconds;
  readonly #tokens;
  readonly #dollars;
  readonly #machineSeconds;
  readonly #machineDollars;
  readonly #unsettled;
  readonly #records;

  constructor(registry: Registry, labels: BoundedLabels) {
    this.#labels = labels;
    this.#requests = registry.counter("octavo:metered_requests_total", "Requests that were accounted for.", [
      ...callerLabels,
      "outcome",
    ]);
    this.#gpuSeconds = registry.counter(
      "octavo:metered_gpu_seconds_total",
      "Seconds of the machine's computing that went to requests.",
      callerLabels,
    );
    this.#tokens = registry.counter("octavo:metered_tokens_total", "Tokens of requests, by kind.", [
      ...callerLabels,
      "kind",
    ]);
    this.#dollars = registry.counter(
      "octavo:metered_dollars_total",
      "What requests cost at the machine's hourly rate.",
      callerLabels,
    );
    this.#machineSeconds = registry.counter(
      "octavo:machine_seconds_total",
      "The machine's time by what it went to; the states add up to the time served.",
      ["state"],
    );
    this.#machineDollars = registry.counter(
      "octavo:machine_dollars_total",
      "The same at the machine's hourly rate.",
      ["state"],
    );
    this.#unsettled = registry.gauge(
      "octavo:unsettled_gpu_seconds",
      "Computing seconds of requests that are not accounted for yet.",
    );
    this.#records = registry.counter("octavo:metering_records_total", "Lines of the metering log.", [
      "outcome",
    ]);
    for (const outcome of ["written", "dropped"]) this.#records.add(0, { outcome });
  }

  count(record: MeteringRecord): void {
    const labels = {
      model: record.model,
      ...this.#labels.resolve(record.tenant ?? noLabel, record.feature ?? noLabel),
    };
    this.#requests.add(1, { ...labels, outcome: record.outcome ?? "ok" });
    this.#gpuSeconds.add(record.gpu_seconds, labels);
    this.#dollars.add(record.dollars ?? 0, labels);
    const cached = record.cached_input_tokens ?? 0;
    this.#tokens.add(record.input_tokens - cached, { ...labels, kind: "input" });
    this.#tokens.add(cached, { ...labels, kind: "cached_input" });
    this.#tokens.add(record.output_tokens, { ...labels, kind: "output" });
  }

  showMachine(time: MachineTime, dollarsPerMs: number, unsettledMs: number): void {
    const states = {
      computing: time.computingMs,
      overhead: time.overheadMs,
      idle: time.idleMs,
    };
    for (const [state, ms] of Object.entries(states)) {
      this.#machineSeconds.raiseTo(ms / 1000, { state });
      this.#machineDollars.raiseTo(ms * dollarsPerMs, { state });
    }
    this.#unsettled.set(Math.max(0, unsettledMs) / 1000);
  }

  showLog(written: number, dropped: number): void {
    this.#records.raiseTo(written, { outcome: "written" });
    this.#records.raiseTo(dropped, { outcome: "dropped" });
  }
}
