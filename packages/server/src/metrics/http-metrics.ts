import type { ErrorCode } from "@octavo/protocol";
import type { Registry } from "@octavo/tracing/prometheus";

const durationBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Metrics of the HTTP layer. Handlers are route patterns: raw paths would create unbounded series. */
export class HttpMetrics {
  readonly #counters;
  readonly #gauges;
  readonly #duration;

  constructor(registry: Registry) {
    this.#counters = registry.counters({
      requests: ["octavo:http_requests_total", "HTTP requests answered.", "method", "handler", "status"],
      errors: ["octavo:http_errors_total", "Error answers by Octavo's code.", "code"],
      disconnects: [
        "octavo:http_client_disconnects_total",
        "Clients that left before their answer was complete.",
      ],
      refused: [
        "octavo:http_connections_refused_total",
        "Connections refused because the limit was reached.",
      ],
    });
    this.#gauges = registry.gauges({
      inFlight: ["octavo:http_requests_in_flight", "HTTP requests being answered."],
      connections: ["octavo:http_connections", "Open connections."],
    });
    this.#duration = registry.histogram(
      "octavo:http_request_duration_seconds",
      "Time from headers to the end of the answer, in seconds.",
      durationBuckets,
      ["handler"],
    );
  }

  get inFlight(): number {
    return this.#gauges.inFlight.value();
  }

  started(): void {
    this.#gauges.inFlight.add(1);
  }

  finished(method: string, handler: string, status: number, durationMs: number): void {
    this.#gauges.inFlight.add(-1);
    this.#counters.requests.add(1, {
      method: knownMethods.has(method) ? method : "other",
      handler,
      status: String(status),
    });
    this.#duration.observe(durationMs / 1000, { handler });
  }

  failed(code: ErrorCode): void {
    this.#counters.errors.add(1, { code });
  }

  disconnected(): void {
    this.#counters.disconnects.add(1);
  }

  connectionOpened(): void {
    this.#gauges.connections.add(1);
  }

  connectionClosed(): void {
    this.#gauges.connections.add(-1);
  }

  connectionRefused(): void {
    this.#counters.refused.add(1);
  }
}

const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]);
