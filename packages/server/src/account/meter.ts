import { randomUUID } from "node:crypto";
import { performance } from "node:perf_hooks";
import type { EngineObserver } from "@octavo/engine";
import type { ErrorCode, MeteringRecord } from "@octavo/protocol";
import { MachineClock, type MachineTime } from "./machine-clock.js";
import type { ServerConfig } from "../config.js";
import { BoundedLabels } from "../metrics/bounded-labels.js";
import type { Registry } from "@octavo/tracing/prometheus";
import type { ServedModels } from "../models/served-models.js";
import { totalUsage } from "./usage.js";
import type { MeteringLog } from "./metering-log.js";
import { MeterMetrics } from "./meter-metrics.js";
import type { RequestAccount } from "./request-account.js";

/** The part of an exchange that its cost record needs. */
export interface MeteredExchange {
  readonly account: RequestAccount;
  readonly octavoId: string;
  readonly errorCode: ErrorCode | undefined;
}

const maxFeaturesPerTenant = 32;
const msPerHour = 3_600_000;
/** Interval of machine records in the log. */
const machineRecordMs = 60_000;

/** Charges the machine's compute time to requests exactly: each step's time is divided among the requests in it. */
export class Meter {
  readonly #models: ServedModels;
  readonly #metrics: MeterMetrics;
  /** 0 if unknown. */
  readonly #dollarsPerHour: number;
  readonly #log: MeteringLog | undefined;
  readonly #clock = new MachineClock(performance.now());
  readonly #server = randomUUID();
  #settledMs = 0;
  #lastTime: MachineTime;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(models: ServedModels, config: ServerConfig, registry: Registry, log: MeteringLog | undefined) {
    this.#models = models;
    this.#dollarsPerHour = config.dollarsPerHour;
    this.#log = log;
    this.#metrics = new MeterMetrics(
      registry,
      new BoundedLabels({ maxTenants: config.maxMeteredTenants, maxFeatures: maxFeaturesPerTenant }),
    );
    this.#lastTime = this.#readClock();
    registry.onCollect(() => this.#collect());
    if (log !== undefined) this.#timer = setInterval(() => this.#logMachine(), machineRecordMs).unref();
  }

  get observer(): EngineObserver {
    return {
      onStep: (step) => this.#clock.noteStep(step, this.#isBusy),
      onSettled: ({ kernelMs }) => {
        this.#settledMs += kernelMs;
      },
    };
  }

  /** Records an exchange that is over, once nothing more is computed for it. */
  finish(exchange: MeteredExchange): void {
    const { account } = exchange;
    const time = new Date().toISOString();
    account.whenSettled(() => {
      if (account.hasWork) this.#record(exchange, time);
    });
  }

  #collect(): void {
    const time = this.#readClock();
    const dollarsPerMs = this.#dollarsPerHour / msPerHour;
    this.#metrics.showMachine(time, dollarsPerMs, time.computingMs - this.#settledMs);
    this.#metrics.showLog(this.#log?.written ?? 0, this.#log?.dropped ?? 0);
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#logMachine();
    await this.#log?.flush();
  }

  get #isBusy(): boolean {
    return this.#models.all.some(({ model }) => {
      const { running, waiting } = model.engine.stats;
      return running + waiting > 0;
    });
  }

  #readClock(): MachineTime {
    return this.#clock.read(performance.now(), this.#isBusy);
  }

  #record({ account, octavoId, errorCode }: MeteredExchange, time: string): void {
    const dollarsPerHour = this.#dollarsPerHour;
    const usage = totalUsage(account.finished.map((request) => request.usage));
    const record: MeteringRecord = {
      kind: "request",
      feature: account.feature ?? null,
      "inference.backend": "octavo",
      model: this.#modelName(account.model),
      gpu_seconds: account.computeMs / 1000,
      input_tokens: usage.promptTokens,
      output_tokens: usage.completionTokens,
      cached_input_tokens: usage.cachedTokens,
      tenant: account.tenant ?? null,
      time,
      outcome: outcomeOf(errorCode, account.wasAborted),
      request_id: octavoId,
      ...(account.trace && { trace_id: account.trace.context.traceId }),
      ...(dollarsPerHour === 0 ? {} : { dollars: (account.computeMs * dollarsPerHour) / msPerHour }),
    };
    this.#metrics.count(record);
    this.#log?.add(record);
  }

  /** The served name: other names never reach the engine. */
  #modelName(named: string | undefined): string {
    const { modelNames } = this.#models.named(named);
    return named === undefined || modelNames.includes(named) ? modelNames[0] : named;
  }

  #logMachine(): void {
    const dollarsPerHour = this.#dollarsPerHour;
    const time = this.#readClock();
    const last = this.#lastTime;
    this.#lastTime = time;
    this.#log?.add({
      kind: "machine",
      time: new Date().toISOString(),
      server: this.#server,
      seconds: (time.wallMs - last.wallMs) / 1000,
      computing_seconds: (time.computingMs - last.computingMs) / 1000,
      overhead_seconds: (time.overheadMs - last.overheadMs) / 1000,
      idle_seconds: (time.idleMs - last.idleMs) / 1000,
      ...(dollarsPerHour === 0 ? {} : { dollars_per_hour: dollarsPerHour }),
    });
  }
}

function outcomeOf(code: ErrorCode | undefined, wasAborted: boolean): MeteringRecord["outcome"] {
  if (code === "request_cancelled") return "aborted";
  if (code !== undefined) return "error";
  return wasAborted ? "aborted" : "ok";
}
