import { performance } from "node:perf_hooks";
import type { ErrorCode } from "@octavo/protocol";
import {
  type ExportCounts,
  type LlmOperation,
  OtlpMetricsExporter,
  type ServerAddress,
  ServerMetrics,
} from "@octavo/tracing";
import type { Logger } from "pino";
import type { ServerConfig } from "../config.js";
import type { RequestAccount } from "../account/request-account.js";
import type { ServedModels } from "../models/served-models.js";
import { resourceOf, serverAddressOf } from "./resource.js";

/** The part of an exchange that metrics need. */
export interface CountedExchange {
  readonly account: Pick<RequestAccount, "model" | "hasWork" | "outputs">;
  /** Undefined for an endpoint that runs no model. */
  readonly operation: LlmOperation | undefined;
  readonly arrivalMs: number;
  readonly errorCode: ErrorCode | undefined;
}

/** Counts every request that runs the model, sampled or not, and exports the counts to a collector. */
export class OtlpServerMetrics {
  readonly #metrics = new ServerMetrics(performance.timeOrigin + performance.now());
  readonly #exporter: OtlpMetricsExporter;
  readonly #models: ServedModels;
  readonly #server: ServerAddress;

  constructor(models: ServedModels, config: ServerConfig, log: Logger) {
    this.#models = models;
    this.#server = serverAddressOf(config);
    this.#exporter = new OtlpMetricsExporter({
      metrics: this.#metrics,
      endpoint: config.otlpMetricsEndpoint,
      headers: config.otlpHeaders,
      intervalMs: config.otlpMetricsIntervalMs,
      resource: resourceOf(config),
      onProblem: (message) => log.warn(message),
    });
  }

  get counts(): ExportCounts {
    return this.#exporter.counts;
  }

  finish({ account, operation, arrivalMs, errorCode }: CountedExchange): void {
    if (operation === undefined) return;
    const { modelNames } = this.#models.named(account.model);
    const [first] = modelNames;
    // unknown names never reach the engine
    const requestModel = (account.hasWork ? account.model : undefined) ?? first;
    this.#metrics.record({
      operation,
      provider: "octavo",
      requestModel,
      responseModel: modelNames.includes(requestModel) ? first : requestModel,
      server: this.#server,
      errorType: errorCode,
      durationMs: performance.now() - arrivalMs,
      outputs: account.outputs,
    });
  }

  close(deadlineMs: number): Promise<void> {
    return this.#exporter.close(deadlineMs);
  }
}

/** Undefined if no collector is configured. */
export function createOtlpMetrics(
  models: ServedModels,
  config: ServerConfig,
  log: Logger,
): OtlpServerMetrics | undefined {
  if (config.otlpMetricsEndpoint === "") return undefined;
  return new OtlpServerMetrics(models, config, log);
}
