import type { ErrorCode } from "@octavo/protocol";
import type { Registry } from "./registry.js";

const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** What the HTTP layer counts of itself. Handlers are route patterns, so that paths cannot make endless series. */
export class HttpMetrics {
  readonly #requests;
  readonly #duration;
  readonly #inFlight;
  readonly #errors;
  readonly #disconnects;
  readonly #connections;
  readonly #dropped;

  constructor(registry: Registry) {
    this.#requests = registry.counter("octavo:http_requests_total", "HTTP requests answered.", [
      "method",
      "handler",
      "status",
    ]);
    this.#duration = registry.histogram(
      "octavo:http_request_duration_seconds",
      "Time from headers to the end of the answer, in seconds.",
      durationBuckets,
      ["handler"],
    );
    this.#inFlight = registry.gauge("octavo:http_requests_in_flight", "HTTP requests being answered.");
    this.#errors = registry.counter(
      "octavo:http_errors_total",
      "Answers that were errors, by Octavo's code.",
      ["code"],
    );
    this.#disconnects = registry.counter(
      "octavo:http_client_disconnects_total",
      "Clients that left before their answer was complete.",
    );
    this.#connections = registry.gauge("octavo:http_connections", "Open connections.");
    this.#dropped = registry.counter(
      "octavo:http_connections_refused_total",
      "Connections refused because the bound was reached.",
    );
  }

  get inFlight(): number {
    return this.#inFlight.value();
  }

  started(): void {
    this.#inFlight.add(1);
  }

  finished(method: string, handler: string, status: number, durationMs: number): void {
    this.#inFlight.add(-1);
    this.#requests.add(1, {
      method: knownMethods.has(method) ? method : "other",
      handler,
      status: String(status),
    });
    this.#duration.observe(durationMs / 1000, { handler });
  }

  failed(code: ErrorCode): void {
    this.#errors.add(1, { code });
  }

  disconnected(): void {
    this.#disconnects.add(1);
  }

  connectionOpened(): void {
    this.#connections.add(1);
  }

  connectionClosed(): void {
    this.#connections.add(-1);
  }

  connectionRefused(): void {
    this.#dropped.add(1);
  }
}

const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]);
