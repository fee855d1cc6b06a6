import { OctavoError } from "@octavo/protocol";
import type { LlmOperation } from "@octavo/tracing";
import type { z } from "zod";
import type { RequestContext } from "./request-context.js";

/** The facts of an endpoint, apart from its handler. */
export interface RouteFacts {
  readonly method: "GET" | "POST" | "DELETE";
  /** An exact path, or a prefix if it ends in `/*`. */
  readonly path: string;
  /**
   * `tenant`: any API key. `admin`: the operator's. `public`: no key, and answered while the server drains. On a server without
   * keys all are open.
   */
  readonly access: "tenant" | "admin" | "public";
  /** What an id at the end of the path finds: only what is the caller's own, or what belongs to nobody. */
  readonly ids: "caller" | "shared" | undefined;
  /** The operation that its span and metrics name; `none`: it runs no model. */
  readonly span: LlmOperation | "none";
  readonly answer: "json" | "json or events" | "text" | "nothing";
  /** What it does, in one sentence. */
  readonly summary: string;
  /** The schema of its body. */
  readonly request: z.ZodObject | undefined;
  /** The shape of errors; default OpenAI's. */
  readonly errorBody?: (error: OctavoError) => unknown;
  /** Asked for all the time by monitors: logged at debug level only. */
  readonly isProbe?: boolean;
}

export interface Route extends RouteFacts {
  /** `rest`: the part of the path matched by the star. */
  readonly handle: (context: RequestContext, rest: string) => Promise<void> | void;
}

export interface RouteMatch {
  readonly route: Route;
  readonly rest: string;
}

/** Exact paths by hash, prefixes in order. Paths are case-sensitive; one trailing slash is ignored. */
export class Router {
  readonly #exact = new Map<string, Route[]>();
  readonly #prefixes: { readonly prefix: string; readonly routes: Route[] }[] = [];

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#routesFor(route.path).push(route);
  }

  /** The allowed methods of a path, OPTIONS included; undefined for an unknown path. */
  methodsOf(path: string): readonly string[] | undefined {
    const found = this.#find(path);
    if (found === undefined) return undefined;
    const methods = found.routes.flatMap((route) =>
      route.method === "GET" ? ["GET", "HEAD"] : [route.method],
    );
    return [...methods, "OPTIONS"];
  }

  /** Throws `not_found` or `method_not_allowed`. */
  match(method: string, path: string): RouteMatch {
    const found = this.#find(path);
    if (found === undefined) throw new OctavoError("not_found", `there is nothing at ${path.slice(0, 200)}`);
    const wantedMethod = method === "HEAD" ? "GET" : method;
    const route = found.routes.find((candidate) => candidate.method === wantedMethod);
    if (route === undefined) {
      const allowed = found.routes.map((candidate) => candidate.method).join(" or ");
      throw new OctavoError(
        "method_not_allowed",
        `${path.slice(0, 200)} takes ${allowed}, not ${method.slice(0, 32)}`,
      );
    }
    return { route, rest: found.rest };
  }

  #routesFor(path: string): Route[] {
    if (path.endsWith("/*")) {
      const prefix = path.slice(0, -1);
      let entry = this.#prefixes.find((candidate) => candidate.prefix === prefix);
      if (entry === undefined) this.#prefixes.push((entry = { prefix, routes: [] }));
      return entry.routes;
    }
    let routes = this.#exact.get(path);
    if (routes === undefined) this.#exact.set(path, (routes = []));
    return routes;
  }

  #find(path: string): { readonly routes: readonly Route[]; readonly rest: string } | undefined {
    const trimmed = path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
    const routes = this.#exact.get(trimmed);
    if (routes !== undefined) return { routes, rest: "" };
    const entry = this.#prefixes.find(({ prefix }) => path.startsWith(prefix) && path.length > prefix.length);
    return entry === undefined ? undefined : { routes: entry.routes, rest: path.slice(entry.prefix.length) };
  }
}

/** What stands behind the question mark of a request target. */
export function requestQuery(target: string): URLSearchParams {
  const start = target.indexOf("?");
  return new URLSearchParams(start < 0 ? "" : target.slice(start + 1).replace(/#.*/, ""));
}

/** The decoded path of a request target: origin form, or absolute form as proxies send it. */
export function requestPath(target: string): string {
  const withoutOrigin = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?#]*/i, "");
  const end = withoutOrigin.search(/[?#]/);
  const path = end < 0 ? withoutOrigin : withoutOrigin.slice(0, end);
  try {
    return decodeURIComponent(path) || "/";
  } catch (cause) {
    throw new OctavoError("invalid_request", "the request path holds an invalid percent escape", { cause });
  }
}
