import type { IncomingMessage, ServerResponse } from "node:http";

/** Response headers that browsers hide from scripts unless they are listed. */
const exposedHeaders = [
  "x-request-id",
  "x-octavo-request-id",
  "x-octavo-error-code",
  "x-octavo-replica",
  "x-octavo-queue-depth",
  "x-octavo-warnings",
  "traceresponse",
  "retry-after",
].join(", ");

/** Which browser origins may read answers. Without any, no CORS headers are sent. */
export class CorsPolicy {
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /** Sets the response's CORS headers when the request's origin is allowed. */
  apply(request: IncomingMessage, response: ServerResponse): void {
    const { origin } = request.headers;
    if (this.#origins.size === 0 || origin === undefined) return;
    const anyOrigin = this.#origins.has("*");
    if (!anyOrigin) response.setHeader("vary", "origin");
    if (!anyOrigin && !this.#origins.has(origin)) return;
    response.setHeader("access-control-allow-origin", anyOrigin ? "*" : origin);
    response.setHeader("access-control-expose-headers", exposedHeaders);
  }

  /** Answers OPTIONS for a path that takes `methods`. */
  answerOptions(request: IncomingMessage, response: ServerResponse, methods: readonly string[]): void {
    response.setHeader("allow", methods.join(", "));
    if (response.hasHeader("access-control-allow-origin")) {
      response.setHeader("access-control-allow-methods", methods.join(", "));
      const asked = request.headers["access-control-request-headers"];
      if (asked !== undefined && /^[\w\- ,]{1,1024}$/.test(asked))
        response.setHeader("access-control-allow-headers", asked);
      response.setHeader("access-control-max-age", "600");
    }
    response.writeHead(204).end();
  }
}
