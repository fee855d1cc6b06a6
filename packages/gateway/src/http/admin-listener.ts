import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { listenAt, type ListenAddress, OctavoError, parseJson, readBody } from "@octavo/protocol";
import { prometheusContentType } from "@octavo/tracing/prometheus";
import type { GatewayConfig } from "../config/schema.js";
import type { MaybePromise } from "../exchange/maybe-promise.js";
import type { AdminRoute } from "../exchange/stage.js";
import type { Gateway } from "../operation/gateway.js";
import { sendOwnJson, sendPlainError } from "./gateway-listener.js";
import { adminPaths } from "./paths.js";

export interface AdminListenerOptions {
  /** Undefined in the first process of several, which has metrics alone. */
  readonly gateway: Gateway | undefined;
  /** Other metrics than the gateway's own. */
  readonly metrics?: () => MaybePromise<string>;
  readonly admin: NonNullable<GatewayConfig["admin"]>;
  /** Reads the configuration again; rejects where it is refused. */
  readonly reload: () => Promise<void>;
  /** Beside those of stages. */
  readonly routes?: readonly AdminRoute[];
}

const maxBodyBytes = 1024 * 1024;
/** Paths are all that counts of admin URLs. */
const origin = "http://admin";

/** The operator's port, behind a key of its own: metrics, state of targets, reload, and what stages add. */
export class AdminListener {
  readonly #options: AdminListenerOptions;
  readonly #keyHash: Buffer;
  readonly #server: Server;

  constructor(options: AdminListenerOptions) {
    this.#options = options;
    this.#keyHash = sha256(options.admin.key);
    this.#server = createServer({ maxHeaderSize: 16 * 1024, requestTimeout: 15_000 }, (request, response) => {
      this.#answer(request, response).catch((thrown: unknown) => {
        if (!response.headersSent) sendPlainError(response, OctavoError.from(thrown));
      });
    });
  }

  listen(port = this.#options.admin.port): Promise<ListenAddress> {
    return listenAt(this.#server, { host: this.#options.admin.host, port });
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#checkKey(request, response);
    const url = URL.canParse(request.url ?? "/", origin) ? new URL(request.url ?? "/", origin) : undefined;
    if (url === undefined) throw new OctavoError("invalid_request", "The path is not one of a URL.");
    const { gateway, metrics, reload } = this.#options;
    const at = `${request.method ?? ""} ${url.pathname}`;
    const own = adminPaths.find((path) => path === at);
    if (own === "GET /metrics") {
      const text = (await metrics?.()) ?? gateway?.metrics.registry.expose();
      response.writeHead(200, { "content-type": prometheusContentType });
      response.end(text);
      return;
    }
    if (gateway === undefined)
      throw new OctavoError(
        "not_found",
        "Here are the metrics of all workers; each worker has its own admin port.",
      );
    switch (own) {
      case "GET /admin/targets":
        sendOwnJson(response, 200, { targets: targetStates(gateway) });
        return;
      case "POST /admin/reload":
        await reload();
        sendOwnJson(response, 200, { status: "reloaded" });
        return;
      case undefined:
        await this.#answerStage(gateway, request, response, url);
    }
  }

  async #answerStage(
    gateway: Gateway,
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
  ): Promise<void> {
    const { routes: own = [] } = this.#options;
    const routes = [...own, ...gateway.runtime.stages.flatMap(({ stage }) => stage.adminRoutes ?? [])];
    for (const route of routes) {
      const values = valuesOf(route, request.method, url.pathname);
      if (values === undefined) continue;
      const body =
        request.method === "GET" || request.method === "DELETE"
          ? undefined
          : await readJson(request, response);
      sendOwnJson(response, 200, await route.handle({ values, query: url.searchParams, body }));
      return;
    }
    throw new OctavoError(
      "not_found",
      `There is no admin endpoint ${request.method ?? ""} ${url.pathname.slice(0, 128)}.`,
    );
  }

  #checkKey(request: IncomingMessage, response: ServerResponse): void {
    const [, key = ""] = /^Bearer (.+)$/.exec(request.headers.authorization ?? "") ?? [];
    if (timingSafeEqual(sha256(key), this.#keyHash)) return;
    response.setHeader("www-authenticate", "Bearer");
    throw new OctavoError("unauthorized", "The admin port needs its key: authorization: Bearer KEY.");
  }
}

async function readJson(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  if (
    (request.headers["content-length"] ?? "0") === "0" &&
    request.headers["transfer-encoding"] === undefined
  )
    return undefined;
  const parsed = parseJson((await readBody(request, response, { maxBytes: maxBodyBytes })).toString("utf8"));
  if (parsed === undefined) throw new OctavoError("invalid_json", "The body is not JSON.");
  return parsed.value;
}

/** What stands for `*` in the route's path; undefined where the route is another. */
function valuesOf(
  route: AdminRoute,
  method: string | undefined,
  path: string,
): readonly string[] | undefined {
  if (route.method !== method) return undefined;
  const wanted = `/admin/${route.path.replace(/^\//, "")}`.split("/");
  const given = path.split("/");
  if (wanted.length !== given.length) return undefined;
  const values: string[] = [];
  for (const [at, part] of wanted.entries()) {
    if (part === "*") values.push(decoded(given[at] ?? ""));
    else if (part !== given[at]) return undefined;
  }
  return values;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (cause) {
    throw new OctavoError("invalid_request", "The path is not percent-encoded UTF-8.", { cause });
  }
}

function targetStates(gateway: Gateway): readonly object[] {
  const now = Date.now();
  return Array.from(gateway.runtime.router.everyTarget(), (target) => ({
    name: target.name,
    provider: target.config.provider,
    models: Object.keys(target.config.models),
    takes_calls: target.admits(now),
    probe: target.isProbeOk === undefined ? "none" : target.isProbeOk ? "ok" : "failed",
    breaker: target.breaker.state(now),
    outstanding: target.outstanding,
    first_byte_ms: { p50: target.firstByte.quantile(0.5), p95: target.firstByte.quantile(0.95) },
  }));
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
