import type { MeteringRecord } from "@octavo/protocol";
import { BoundedLabels, noLabel } from "../metrics/bounded-labels.js";
import type { Registry } from "@octavo/tracing/prometheus";
import type { MachineTime } from "./machine-clock.js";

const callerLabels = ["model", "tenant", "feature"] as const;

/** Costs of requests and of the machine, as counters. */
export class MeterMetrics {
  readonly #labels: BoundedLabels;
  readonly #counters;
  readonly #unsettled;

  constructor(registry: Registry, labels: BoundedLabels) {
    this.#labels = labels;
    this.#counters = registry.counters({
      requests: ["octavo:metered_requests_total", "Metered requests.", ...callerLabels, "outcome"],
      gpuSeconds: ["octavo:metered_gpu_seconds_total", "Compute seconds of requests.", ...callerLabels],
      tokens: ["octavo:metered_tokens_total", "Tokens of requests, by kind.", ...callerLabels, "kind"],
      dollars: [
        "octavo:metered_dollars_total",
        "Cost of requests at the machine's hourly rate.",
        ...callerLabels,
      ],
      machineSeconds: [
        "octavo:machine_seconds_total",
        "The machine's time by state; the states add up to the time served.",
        "state",
      ],
      machineDollars: ["octavo:machine_dollars_total", "The same at the machine's hourly rate.", "state"],
      records: ["octavo:metering_records_total", "Lines of the metering log.", "outcome"],
    });
    this.#unsettled = registry.gauge(
      "octavo:unsettled_gpu_seconds",
      "Compute seconds of requests that are still running.",
    );
    for (const outcome of ["written", "dropped"]) this.#counters.records.add(0, { outcome });
  }

  count(record: MeteringRecord): void {
    const labels = {
      model: record.model,
      ...this.#labels.resolve(record.tenant ?? noLabel, record.feature ?? noLabel),
    };
    this.#counters.requests.add(1, { ...labels, outcome: record.outcome ?? "ok" });
    this.#counters.gpuSeconds.add(record.gpu_seconds, labels);
    this.#counters.dollars.add(record.dollars ?? 0, labels);
    const cached = record.cached_input_tokens ?? 0;
    this.#counters.tokens.add(record.input_tokens - cached, { ...labels, kind: "input" });
    this.#counters.tokens.add(cached, { ...labels, kind: "cached_input" });
    this.#counters.tokens.add(record.output_tokens, { ...labels, kind: "output" });
  }

  showMachine(time: MachineTime, dollarsPerMs: number, unsettledMs: number): void {
    const states = {
      computing: time.computingMs,
      overhead: time.overheadMs,
      idle: time.idleMs,
    };
    for (const [state, ms] of Object.entries(states)) {
      this.#counters.machineSeconds.raiseTo(ms / 1000, { state });
      this.#counters.machineDollars.raiseTo(ms * dollarsPerMs, { state });
    }
    this.#unsettled.set(Math.max(0, unsettledMs) / 1000);
  }

  showLog(written: number, dropped: number): void {
    this.#counters.records.raiseTo(written, { outcome: "written" });
    this.#counters.records.raiseTo(dropped, { outcome: "dropped" });
  }
}
