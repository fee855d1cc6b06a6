import { signalAddress } from "../export/otlp-address.js";
import { HttpPoster } from "../export/http-post.js";
import { rejectedItems } from "../export/partial-success.js";
import { ProblemReport, failureReason } from "../export/problem-report.js";
import { within } from "../export/within.js";
import type { Attributes } from "../span/llm-span.js";
import { otlpMetricsBody } from "./otlp-metrics-json.js";
import type { ServerMetrics } from "./server-metrics.js";

/** Where metrics go by OTLP, and how often. Times in ms. */
export interface OtlpMetricsExporterOptions {
  readonly metrics: ServerMetrics;
  /** OTLP over HTTP with JSON: a collector's base address, or the full one of its metrics. */
  readonly endpoint: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Describes the process: `service.name` and its like. */
  readonly resource: Attributes;
  /** Default a minute, as OpenTelemetry's. */
  readonly intervalMs?: number;
  /** For one attempt. Default 10000. */
  readonly timeoutMs?: number;
  /** Called for an export that failed, at most once a minute. */
  readonly onProblem?: (message: string) => void;
}

/** What became of exports. Counts are cumulative: what one export loses, the next one has. */
export interface ExportCounts {
  readonly delivered: number;
  readonly failed: number;
  /** Their time came while the one before was still under way. */
  readonly skipped: number;
}

/**
 * Sends what was counted to an OpenTelemetry collector again and again. Nothing waits to be sent, so that a collector that
 * is down costs no memory; no timer keeps a process alive.
 */
export class OtlpMetricsExporter {
  readonly #options: OtlpMetricsExporterOptions;
  readonly #poster: HttpPoster;
  readonly #problems: ProblemReport;
  readonly #timer: NodeJS.Timeout;
  #sending: Promise<void> | undefined;
  #counts = { delivered: 0, failed: 0, skipped: 0 };
  #isClosed = false;

  /** Throws `invalid_option` for an address that is none. */
  constructor(options: OtlpMetricsExporterOptions) {
    this.#options = options;
    const { endpoint, headers = {}, intervalMs = 60_000 } = options;
    this.#poster = new HttpPoster(signalAddress(endpoint, "metrics"), headers, "otlpMetricsEndpoint");
    this.#problems = new ProblemReport(`metrics to ${this.url}`, options.onProblem);
    this.#timer = setInterval(() => this.#tick(), intervalMs).unref();
  }

  /** Where they go. */
  get url(): string {
    return this.#poster.url;
  }

  get counts(): ExportCounts {
    return { ...this.#counts };
  }

  /** Sends what was counted until now; resolves when that is done or failed, at the latest after `deadlineMs`. */
  async flush(deadlineMs: number): Promise<void> {
    // what is under way may have been counted before the last calls
    const all = (this.#sending ?? Promise.resolve()).then(() => this.#send());
    await within(deadlineMs, all);
  }

  /** Sends what was counted a last time, and no more after that. */
  async close(deadlineMs: number): Promise<void> {
    if (this.#isClosed) return;
    clearInterval(this.#timer);
    await this.flush(deadlineMs);
    this.#isClosed = true;
    this.#poster.close();
  }

  #tick(): void {
    if (this.#sending === undefined) void this.#send();
    else this.#counts.skipped += 1;
  }

  #send(): Promise<void> {
    this.#sending ??= this.#post().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #post(): Promise<void> {
    const { metrics, resource, timeoutMs = 10_000 } = this.#options;
    if (this.#isClosed || metrics.histograms.every(({ points }) => points.length === 0)) return;
    let reason: string;
    try {
      const answer = await this.#poster.post(otlpMetricsBody(metrics, resource, Date.now()), timeoutMs);
      const rejected = rejectedItems(answer.text, "rejectedDataPoints");
      if (answer.status >= 200 && answer.status < 300 && rejected === 0) {
        this.#counts.delivered += 1;
        return;
      }
      reason =
        rejected > 0
          ? `the collector rejected ${rejected} points`
          : `the collector answered ${answer.status}`;
    } catch (thrown) {
      reason = failureReason(thrown);
    }
    this.#counts.failed += 1;
    this.#problems.tell(reason);
  }
}
