import { HttpPoster } from "./http-post.js";
import { failureReason } from "./problem-report.js";

export interface OtlpDeliveryOptions {
  /** For one attempt. */
  readonly timeoutMs: number;
  readonly maxAttempts: number;
  /** Before the second attempt; doubles with each, where the collector does not say how long it wants to be left alone. */
  readonly retryDelayMs: number;
}

/** What became of a body: the collector's answer to it, or why it was given up. */
export type Delivered =
  | { readonly taken: true; readonly text: string }
  | { readonly taken: false; readonly reason: string };

const maxRetryWaitMs = 60_000;

/** What may pass, by the OpenTelemetry protocol's "Failures" over HTTP, and a request that took too long; all else is for good. */
const retryableStatus: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** Posts bodies to a collector, one at a time, again where it may take them later. No timer of it keeps a process alive. */
export class OtlpDelivery {
  readonly #poster: HttpPoster;
  readonly #options: OtlpDeliveryOptions;
  #wake: (() => void) | undefined;
  #isClosed = false;

  /** Throws `invalid_option` for anything but an http or https address. */
  constructor(url: string, headers: Readonly<Record<string, string>>, options: OtlpDeliveryOptions) {
    this.#poster = new HttpPoster(url, headers, "otlpEndpoint");
    this.#options = options;
  }

  get url(): string {
    return this.#poster.url;
  }

  async deliver(body: string): Promise<Delivered> {
    const { timeoutMs, maxAttempts, retryDelayMs } = this.#options;
    let reason = "";
    for (let attempt = 1; attempt <= maxAttempts && !this.#isClosed; attempt++) {
      let waitMs = retryDelayMs * 2 ** (attempt - 1);
      try {
        const { status, text, retryAfterMs } = await this.#poster.post(body, timeoutMs);
        if (status >= 200 && status < 300) return { taken: true, text };
        reason = `the collector answered ${status}`;
        if (!retryableStatus.has(status)) break;
        waitMs = retryAfterMs ?? waitMs;
      } catch (thrown) {
        reason = failureReason(thrown);
      }
      if (attempt < maxAttempts && !this.#isClosed) await this.#pause(Math.min(waitMs, maxRetryWaitMs));
    }
    return { taken: false, reason: reason || "the exporter was closed" };
  }

  /** Makes the next attempt now, if one is waited for. */
  hurry(): void {
    this.#wake?.();
  }

  /** Gives up what is under way. */
  close(): void {
    this.#isClosed = true;
    this.#wake?.();
    this.#poster.close();
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(finish, milliseconds);
      timer.unref();
      this.#wake = finish;
    });
  }
}
