import { performance } from "node:perf_hooks";
import { OctavoError, queueDepthHeader, toErrorBody } from "@octavo/protocol";
import type { ApiKeys } from "./api-keys.js";
import type { CorsPolicy } from "./cors.js";
import type { HttpExchange } from "./exchange.js";
import { isOperators } from "../tenants/ownership.js";
import { logFailure, publicError } from "./public-error.js";
import { sendError } from "./respond.js";
import { requestPath, type Router } from "./router.js";
import type { RequestAccount } from "../account/request-account.js";
import type { SlowAnswer } from "../account/slow-answer.js";

export interface DispatcherOptions {
  readonly router: Router;
  readonly keys: ApiKeys;
  readonly cors: CorsPolicy;
  readonly isDraining: () => boolean;
  /** Requests that wait in the engine. */
  readonly queueDepth: () => number;
  readonly accessLog: boolean;
  /** What is taken away from the start of paths, where they have it. */
  readonly rootPath: string;
  /** Why the slowest engine request of an exchange was slow, if it was. */
  readonly explain: (account: RequestAccount) => SlowAnswer | undefined;
}

/** Checks origin and key, finds the route, calls the handler and turns failures into error answers. */
export class Dispatcher {
  readonly #options: DispatcherOptions;

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async dispatch(exchange: HttpExchange): Promise<void> {
    try {
      await this.#answer(exchange);
    } catch (thrown) {
      this.#fail(exchange, thrown);
    }
  }

  /** One line per exchange, with the causes of what was slow; probes and scrapes are logged at debug level. */
  log(exchange: HttpExchange): void {
    if (!this.#options.accessLog) return;
    const { request, response, errorCode, account } = exchange;
    const slow = this.#options.explain(account);
    const { tenant } = account;
    const fields = {
      method: request.method,
      path: request.url?.slice(0, 512),
      status: response.headersSent ? response.statusCode : undefined,
      ...(tenant === undefined ? {} : { tenant }),
      durationMs: Math.round((performance.now() - exchange.arrivalMs) * 10) / 10,
      ...(slow === undefined ? {} : { slow }),
      ...(errorCode === undefined ? {} : { code: errorCode }),
      ...(response.writableFinished ? {} : { incomplete: true }),
    };
    if (exchange.route?.isProbe === true) exchange.log.debug(fields, "request");
    else exchange.log.info(fields, "request");
  }

  async #answer(exchange: HttpExchange): Promise<void> {
    const { router, keys, cors, isDraining, queueDepth, rootPath } = this.#options;
    const { request, response } = exchange;
    const { key } = exchange.account;
    const method = request.method ?? "GET";
    cors.apply(request, response);
    if (isDraining()) response.setHeader("connection", "close");
    const path = belowRoot(requestPath(request.url ?? "/"), rootPath);
    if (method === "OPTIONS") {
      const methods = path === "*" ? ["GET", "HEAD", "POST", "OPTIONS"] : router.methodsOf(path);
      if (methods === undefined)
        throw new OctavoError("not_found", `there is nothing at ${path.slice(0, 200)}`);
      cors.answerOptions(request, response, methods);
      return;
    }
    // before the route lookup, so that callers without a key cannot find out which paths exist
    if (path.startsWith("/v1/")) keys.check(key, request.headers);
    const methods = router.methodsOf(path);
    if (methods !== undefined && !methods.includes(method)) response.setHeader("allow", methods.join(", "));
    const { route, rest } = router.match(method, path);
    exchange.route = route;
    if (route.access !== "public") {
      keys.check(key, request.headers);
      response.setHeader(queueDepthHeader, queueDepth());
      if (isDraining())
        throw new OctavoError("shutting_down", "the server is draining and takes no new requests", {
          retryAfterSeconds: 1,
        });
    }
    if (route.access === "admin" && key !== undefined && !isOperators(key)) {
      const message = `this key is not the operator's (--api-key), whose ${route.path} is`;
      throw new OctavoError("unauthorized", message);
    }
    await route.handle(exchange, rest);
  }

  #fail(exchange: HttpExchange, thrown: unknown): void {
    const error = publicError(thrown, exchange);
    exchange.errorCode = error.code;
    logFailure(exchange.log, error);
    // stops engine requests that the handler left running
    exchange.abort(error);
    sendError(exchange.request, exchange.response, error, (exchange.route?.errorBody ?? toErrorBody)(error));
  }
}

/** Proxies that mount a server below a path take it away, or leave it. */
function belowRoot(path: string, root: string): string {
  if (root === "" || !(path === root || path.startsWith(`${root}/`))) return path;
  return path.slice(root.length) || "/";
}
