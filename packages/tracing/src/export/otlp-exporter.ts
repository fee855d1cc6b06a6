import type { ConventionName } from "../conventions/convention.js";
import type { Attributes, LlmSpan } from "../span/llm-span.js";
import { signalAddress } from "./otlp-address.js";
import { OtlpDelivery } from "./otlp-delivery.js";
import { otlpSpan, otlpTraceBody } from "./otlp-json.js";
import { rejectedItems } from "./partial-success.js";
import { ProblemReport } from "./problem-report.js";
import type { SinkCounts, SpanSink } from "./span-sink.js";
import { WaitingSpans } from "./waiting-spans.js";
import { within } from "./within.js";

/** Where spans go by OTLP, and how many may wait for that. Times in ms. */
export interface OtlpExporterOptions {
  /** OTLP over HTTP with JSON: a collector's base address, or the full one of its traces. */
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Describes the process: `service.name` and its like. */
  readonly resource: Attributes;
  readonly conventions: readonly ConventionName[];
  /** Spans that may wait; more are dropped and counted. Default 4096. */
  readonly maxWaiting?: number;
  /** Characters of captured content that may wait with them. Default 32 million. */
  readonly maxWaitingCharacters?: number;
  /** Default 256. */
  readonly maxBatch?: number;
  /** A batch whose body would be longer goes out in parts; collectors refuse what is longer than theirs. Default 4 MiB. */
  readonly maxBodyCharacters?: number;
  /** A batch goes out when it is full, or this long after its first span. Default 1000. */
  readonly maxDelayMs?: number;
  /** For one attempt. Default 10000. */
  readonly timeoutMs?: number;
  /** Default 5. */
  readonly maxAttempts?: number;
  /** Before the second attempt; doubles with each. Default 500. */
  readonly retryDelayMs?: number;
  /** Called for a batch that was given up, at most once a minute. */
  readonly onProblem?: (message: string) => void;
}

/** Spans encoded without letting anything else run. */
const encodeSlice = 64;

/**
 * Sends spans to an OpenTelemetry collector, one batch at a time. Adding a span is never slowed by a collector that
 * is down, slow or refuses: what waits is bounded, what is dropped is counted, and no timer keeps a process alive.
 */
export class OtlpExporter implements SpanSink {
  readonly #options: Required<Omit<OtlpExporterOptions, "onProblem">>;
  readonly #delivery: OtlpDelivery;
  readonly #problems: ProblemReport;
  readonly #spans: WaitingSpans;
  #sending: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #delivered = 0;
  #droppedFull = 0;
  #droppedFailed = 0;
  #isHurried = false;
  #isClosed = false;

  /** Throws `invalid_option` for an address that is none. */
  constructor(options: OtlpExporterOptions) {
    this.#options = {
      headers: {},
      maxWaiting: 4096,
      maxWaitingCharacters: 32_000_000,
      maxBatch: 256,
      maxBodyCharacters: 4 * 1024 * 1024,
      maxDelayMs: 1000,
      timeoutMs: 10_000,
      maxAttempts: 5,
      retryDelayMs: 500,
      ...options,
    };
    const { maxWaiting, maxWaitingCharacters } = this.#options;
    this.#spans = new WaitingSpans({ maxSpans: maxWaiting, maxCharacters: maxWaitingCharacters });
    const url = signalAddress(options.endpoint, "traces");
    this.#delivery = new OtlpDelivery(url, this.#options.headers, this.#options);
    this.#problems = new ProblemReport(`traces to ${this.url}`, options.onProblem);
  }

  /** Where batches go. */
  get url(): string {
    return this.#delivery.url;
  }

  get counts(): SinkCounts {
    return {
      delivered: this.#delivered,
      droppedFull: this.#droppedFull,
      droppedFailed: this.#droppedFailed,
      waiting: this.#spans.size,
    };
  }

  add(span: LlmSpan): void {
    if (this.#isClosed || !this.#spans.add(span)) {
      this.#droppedFull += 1;
      return;
    }
    if (this.#spans.numWaiting >= this.#options.maxBatch) this.#start();
    else this.#timer ??= setTimeout(() => this.#start(), this.#options.maxDelayMs).unref();
  }

  async flush(deadlineMs: number): Promise<void> {
    this.#isHurried = true;
    this.#start();
    this.#delivery.hurry();
    await within(deadlineMs, this.#sending ?? Promise.resolve());
    this.#isHurried = false;
  }

  async close(deadlineMs: number): Promise<void> {
    await this.flush(deadlineMs);
    this.#isClosed = true;
    this.#droppedFailed += this.#spans.clear();
    this.#delivery.close();
    await this.#sending;
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#sending !== undefined || this.#spans.numWaiting === 0) return;
    this.#sending = this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (this.#spans.numWaiting > 0 && !this.#isClosed) {
        this.#timer ??= setTimeout(() => this.#start(), this.#options.maxDelayMs).unref();
      }
    });
  }

  /** Sends what waits, however little, and goes on while there are full batches or a flush wants the rest. */
  async #sendAll(): Promise<void> {
    const { maxBatch } = this.#options;
    do {
      for (const part of await this.#encode(this.#spans.take(maxBatch))) await this.#deliver(part);
      this.#spans.settle();
    } while (this.#spans.numWaiting >= maxBatch || (this.#isHurried && this.#spans.numWaiting > 0));
  }

  async #deliver(batch: readonly string[]): Promise<void> {
    const delivered = await this.#delivery.deliver(otlpTraceBody(batch, this.#options.resource));
    if (!delivered.taken) {
      this.#droppedFailed += batch.length;
      this.#problems.tell(`${batch.length} spans were dropped: ${delivered.reason}`);
      return;
    }
    const rejected = Math.min(batch.length, rejectedItems(delivered.text, "rejectedSpans"));
    this.#delivered += batch.length - rejected;
    this.#droppedFailed += rejected;
    if (rejected > 0) this.#problems.tell(`the collector rejected ${rejected} of ${batch.length} spans`);
  }

  /** In parts of one body each; a span that is longer than a body by itself goes alone. */
  async #encode(batch: readonly LlmSpan[]): Promise<readonly (readonly string[])[]> {
    const { conventions, maxBodyCharacters } = this.#options;
    const parts: string[][] = [];
    let room = 0;
    for (const [index, span] of batch.entries()) {
      if (index > 0 && index % encodeSlice === 0) await new Promise((resolve) => setImmediate(resolve));
      const encoded = JSON.stringify(otlpSpan(span, conventions));
      if (parts.length === 0 || encoded.length > room) {
        parts.push([]);
        room = maxBodyCharacters;
      }
      parts.at(-1)?.push(encoded);
      room -= encoded.length;
    }
    return parts;
  }
}
