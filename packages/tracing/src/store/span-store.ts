import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { makeFolder } from "@octavo/protocol/make-folder";
import { OctavoError } from "@octavo/protocol";
import { ProblemReport, failureReason } from "../export/problem-report.js";
import type { SinkCounts, SpanSink } from "../export/span-sink.js";
import { WaitingSpans } from "../export/waiting-spans.js";
import { within } from "../export/within.js";
import type { LlmSpan } from "../span/llm-span.js";
import { rowLine } from "./columns.js";
import { listSegments, mayBeWritten, removeOld, segmentName } from "./segments.js";

export interface SpanStoreOptions {
  readonly folder: string;
  /** Rows of a segment before it becomes Parquet. Default 20000. */
  readonly maxSegmentRows?: number;
  /** Or bytes of its lines. Default 64 MiB: a segment is whole in memory while it becomes Parquet. */
  readonly maxSegmentBytes?: number;
  /** Or the time since it was begun. Default a day. */
  readonly maxSegmentAgeMs?: number;
  /** Spans that may wait for the disk; more are dropped and counted. Default 16384. */
  readonly maxWaiting?: number;
  /** Characters of captured content that may wait with them. Default 32 million. */
  readonly maxWaitingCharacters?: number;
  /** Spans are written this often. Default 1000. */
  readonly writeEveryMs?: number;
  /** Default 4 GiB. */
  readonly maxBytes?: number;
  /** Default 7 days. */
  readonly maxAgeMs?: number;
  /** Segments are ended and removed by their age this often, even if no span comes. Default an hour. */
  readonly tidyEveryMs?: number;
  /** Called for spans that could not be written, at most once a minute. */
  readonly onProblem?: (message: string) => void;
}

const gibibyte = 1024 ** 3;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * Writes spans to a folder: lines of JSON that become Parquet on a thread of its own. Many processes may write to one
 * folder, and what they wrote can be read at any time. A disk that is slow or full costs spans, counted, and nothing else.
 */
export class SpanStore implements SpanSink {
  readonly #options: Required<Omit<SpanStoreOptions, "onProblem">>;
  readonly #problems: ProblemReport;
  readonly #spans: WaitingSpans;
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #tidyTimer: NodeJS.Timeout;
  #stem: string;
  #begunMs = 0;
  #rows = 0;
  #bytes = 0;
  #segments = 0;
  #delivered = 0;
  #droppedFull = 0;
  #droppedFailed = 0;
  #isClosed = false;
  /** One segment after the other: each is whole in its worker's memory. */
  #converting: Promise<void> = Promise.resolve();

  private constructor(options: SpanStoreOptions) {
    this.#options = {
      maxSegmentRows: 20_000,
      maxSegmentBytes: 64 * 1024 ** 2,
      maxSegmentAgeMs: dayMs,
      maxWaiting: 16_384,
      maxWaitingCharacters: 32_000_000,
      writeEveryMs: 1000,
      maxBytes: 4 * gibibyte,
      maxAgeMs: 7 * dayMs,
      tidyEveryMs: hourMs,
      ...options,
    };
    this.#problems = new ProblemReport(`traces in ${options.folder}`, options.onProblem);
    const { maxWaiting, maxWaitingCharacters } = this.#options;
    this.#spans = new WaitingSpans({ maxSpans: maxWaiting, maxCharacters: maxWaitingCharacters });
    this.#stem = this.#newStem();
    this.#tidyTimer = setInterval(() => this.#tidyAged(), this.#options.tidyEveryMs).unref();
  }

  /** Makes the folder, and finishes segments of processes that ended. Throws `invalid_option` where it cannot be written. */
  static async open(options: SpanStoreOptions): Promise<SpanStore> {
    try {
      makeFolder(options.folder);
    } catch (cause) {
      const message = `traceStore: ${options.folder} cannot be written: ${failureReason(cause)}`;
      throw new OctavoError("invalid_option", message, { param: "traceStore", cause });
    }
    const store = new SpanStore(options);
    for (const segment of await listSegments(options.folder)) {
      if (!segment.isParquet && !mayBeWritten(segment)) store.#convert(segment.stem);
    }
    store.#tidy();
    return store;
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
    this.#timer ??= setTimeout(() => void this.#write(), this.#options.writeEveryMs).unref();
  }

  async flush(deadlineMs: number): Promise<void> {
    await within(deadlineMs, this.#write());
  }

  /** What was being turned into Parquet and is not done by the deadline is done by the next process that opens the store. */
  async close(deadlineMs: number): Promise<void> {
    const isIdle = this.#write().then(() => this.#converting);
    await within(deadlineMs, isIdle);
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#tidyTimer);
    this.#droppedFailed += this.#spans.clear();
  }

  async #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#writing !== undefined) await this.#writing;
    if (this.#spans.numWaiting === 0) return;
    this.#writing = this.#writeWaiting().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #writeWaiting(): Promise<void> {
    const { maxSegmentRows, maxSegmentBytes } = this.#options;
    while (this.#spans.numWaiting > 0) {
      this.#rollAged();
      const spans = this.#spans.take(Math.min(slice, maxSegmentRows - this.#rows));
      const lines = Buffer.from(spans.map(rowLine).join(""));
      try {
        await appendFile(`${this.#stem}.jsonl`, lines);
        this.#delivered += spans.length;
      } catch (thrown) {
        this.#droppedFailed += spans.length;
        this.#problems.tell(failureReason(thrown));
      }
      this.#spans.settle();
      this.#rows += spans.length;
      this.#bytes += lines.byteLength;
      if (this.#rows >= maxSegmentRows || this.#bytes >= maxSegmentBytes) this.#roll();
    }
  }

  #rollAged(): void {
    if (this.#rows > 0 && Date.now() - this.#begunMs > this.#options.maxSegmentAgeMs) this.#roll();
  }

  #tidyAged(): void {
    if (this.#writing === undefined) this.#rollAged();
    this.#tidy();
  }

  #roll(): void {
    this.#convert(this.#stem);
    this.#stem = this.#newStem();
    this.#rows = 0;
    this.#bytes = 0;
  }

  #newStem(): string {
    this.#begunMs = Date.now();
    return join(this.#options.folder, segmentName(this.#begunMs, this.#segments++));
  }

  #convert(stem: string): void {
    this.#converting = this.#converting.then(() => this.#runWorker(stem));
    this.#tidy();
  }

  /** After what is being turned into Parquet. */
  #tidy(): void {
    this.#converting = this.#converting
      .then(() => removeOld(this.#options.folder, this.#options, Date.now(), this.#stem))
      .catch((thrown: unknown) => this.#problems.tell(failureReason(thrown)));
  }

  #runWorker(stem: string): Promise<void> {
    const worker = new Worker(new URL("segment-worker.js", import.meta.url), { workerData: stem });
    worker.unref();
    return new Promise((resolve) => {
      worker.on("error", (error) => this.#problems.tell(failureReason(error)));
      worker.on("exit", () => resolve());
    });
  }
}

/** Rows rendered without letting anything else run. */
const slice = 256;
