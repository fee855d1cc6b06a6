import { signalAddress } from "../export/otlp-address.js";
import { OtlpDelivery } from "../export/otlp-delivery.js";
import { rejectedItems } from "../export/partial-success.js";
import type { SinkCounts } from "../export/span-sink.js";
import { within } from "../export/within.js";
import type { Attributes } from "../span/llm-span.js";
import { type EvaluationResult, otlpEvaluation, otlpLogsBody } from "./evaluation-result.js";

/** Where evaluation results go by OTLP, as log records. Times in ms. */
export interface EvaluationExporterOptions {
  /** OTLP over HTTP with JSON: a collector's base address, or the full one of its logs. */
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Describes the process: `service.name` and its like. */
  readonly resource: Attributes;
  /** Results that may wait; more are dropped and counted. Default 4096. */
  readonly maxWaiting?: number;
  /** Default 256. */
  readonly maxBatch?: number;
  /** For one attempt, of three. Default 10000. */
  readonly timeoutMs?: number;
  /** Before the second attempt; doubles with the third. Default 500. */
  readonly retryDelayMs?: number;
}

const maxAttempts = 3;

/** Sends results of evaluations to an OpenTelemetry collector as events. What waits is bounded, what is dropped counted. */
export class EvaluationExporter {
  readonly #options: Required<EvaluationExporterOptions>;
  readonly #delivery: OtlpDelivery;
  #waiting: EvaluationResult[] = [];
  #numUnderWay = 0;
  #sending: Promise<void> | undefined;
  #counts = { delivered: 0, droppedFull: 0, droppedFailed: 0 };
  #isClosed = false;

  /** Throws `invalid_option` for an address that is none. */
  constructor(options: EvaluationExporterOptions) {
    this.#options = {
      headers: {},
      maxWaiting: 4096,
      maxBatch: 256,
      timeoutMs: 10_000,
      retryDelayMs: 500,
      ...options,
    };
    const url = signalAddress(options.endpoint, "logs");
    this.#delivery = new OtlpDelivery(url, this.#options.headers, { ...this.#options, maxAttempts });
  }

  get counts(): SinkCounts {
    return { ...this.#counts, waiting: this.#waiting.length + this.#numUnderWay };
  }

  /** Never throws and never waits. */
  add(result: EvaluationResult): void {
    if (this.#isClosed || this.#waiting.length + this.#numUnderWay >= this.#options.maxWaiting) {
      this.#counts.droppedFull += 1;
      return;
    }
    this.#waiting.push(result);
    if (this.#waiting.length >= this.#options.maxBatch) this.#start();
  }

  /** Sends what waits, at the latest until `deadlineMs`, and takes no more. */
  async close(deadlineMs: number): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#start();
    this.#delivery.hurry();
    await within(deadlineMs, this.#sending ?? Promise.resolve());
    this.#counts.droppedFailed += this.#waiting.length;
    this.#waiting = [];
    this.#delivery.close();
    await this.#sending;
  }

  #start(): void {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    const { maxBatch } = this.#options;
    while (this.#waiting.length >= maxBatch || (this.#isClosed && this.#waiting.length > 0)) {
      const batch = this.#waiting.splice(0, maxBatch);
      this.#numUnderWay = batch.length;
      const delivered = await this.#deliver(batch);
      this.#counts.delivered += delivered;
      this.#counts.droppedFailed += batch.length - delivered;
      this.#numUnderWay = 0;
    }
  }

  /** Returns how many were taken. */
  async #deliver(batch: readonly EvaluationResult[]): Promise<number> {
    const body = otlpLogsBody(
      batch.map((result) => JSON.stringify(otlpEvaluation(result))),
      this.#options.resource,
    );
    const delivered = await this.#delivery.deliver(body);
    if (!delivered.taken) return 0;
    return batch.length - Math.min(batch.length, rejectedItems(delivered.text, "rejectedLogRecords"));
  }
}
