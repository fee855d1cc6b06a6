import { setTimeout as sleep } from "node:timers/promises";
import { OctavoError } from "@octavo/protocol/errors";
import { Agent, EnvHttpProxyAgent, request, type Dispatcher } from "undici";
import { hubStatusError } from "./hub-errors.js";
import type { Environment, HubSettings } from "./hub-settings.js";

interface HubClientOptions {
  readonly settings: HubSettings;
  /** Proxies: HTTP_PROXY, HTTPS_PROXY, NO_PROXY. */
  readonly env: Environment;
  readonly signal?: AbortSignal | undefined;
  /** First pause before trying again; doubles each time. Default 500 ms. */
  readonly retryDelayMs?: number;
  /** Silence after which a connection, a header or a body counts as lost. Default 30 s. */
  readonly timeoutMs?: number;
}

/** What the hub says of a repository at one revision. */
interface RepositoryInfo {
  readonly commit: string;
  readonly files: readonly string[];
}

/** What it says of one file. */
export interface FileMetadata {
  /** Names the blob: sha256 in hex for large files, git's sha1 for small ones. */
  readonly etag: string;
  readonly size: number | undefined;
}

type Headers = Dispatcher.ResponseData["headers"];
type Body = Dispatcher.ResponseData["body"];

interface Exchange {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
  /** Headers of the redirects that led here, first to last, then this answer's. */
  readonly trail: readonly Headers[];
}

const maxRedirects = 10;
const maxInfoBytes = 64 * 1024 * 1024;
const maxFiles = 100_000;
const metadataRetries = 2;

/**
 * The three questions asked of the hub: what is in a repository, what is a file's hash, and its bytes from an offset.
 * Protocol as in Python's huggingface_hub (file_download.py, hf_api.py).
 */
export class HubClient implements AsyncDisposable {
  readonly #settings: HubSettings;
  readonly #dispatcher: Dispatcher;
  readonly #signal: AbortSignal | undefined;
  readonly #retryDelayMs: number;
  readonly #timeoutMs: number;

  constructor(options: HubClientOptions) {
    this.#settings = options.settings;
    this.#signal = options.signal;
    this.#retryDelayMs = options.retryDelayMs ?? 500;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#dispatcher = createDispatcher(options.env, this.#timeoutMs);
  }

  /** @throws OctavoError `artifact_not_found`, `hub_denied`, `hub_unreachable` */
  async repositoryInfo(repository: string, revision: string): Promise<RepositoryInfo> {
    const url = `${this.#settings.endpoint}/api/models/${repository}/revision/${encodeURIComponent(revision)}`;
    const what = `${repository}@${revision}`;
    const text = await this.withRetries(metadataRetries, what, async () => {
      const exchange = await this.#exchange("GET", url, {}, what);
      return await readText(exchange.body, what);
    });
    return parseInfo(text, what);
  }

  /** @throws OctavoError as `repositoryInfo` */
  async fileMetadata(repository: string, commit: string, file: string): Promise<FileMetadata> {
    const what = `${repository}/${file}`;
    const { trail } = await this.withRetries(metadataRetries, what, async () => {
      const exchange = await this.#exchange("HEAD", this.fileUrl(repository, commit, file), {}, what);
      await exchange.body.dump();
      return exchange;
    });
    const find = (name: string): string | undefined => {
      for (const headers of trail) {
        const value = single(headers[name]);
        if (value !== undefined) return value;
      }
      return undefined;
    };
    const etag = (find("x-linked-etag") ?? single(trail.at(-1)?.["etag"]))
      ?.replace(/^W\//, "")
      .replace(/^"(.*)"$/, "$1");
    if (etag === undefined || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/.test(etag)) {
      throw new OctavoError(
        "hub_unreachable",
        `the hub gave no usable ETag for ${what}; is ${this.#settings.endpoint} a model hub?`,
      );
    }
    return { etag, size: parseSize(find("x-linked-size") ?? single(trail.at(-1)?.["content-length"])) };
  }

  /** The file's bytes from `offset` on; status 206, or 200 when the server starts over, or 416. */
  async openFile(repository: string, commit: string, file: string, offset: number): Promise<Exchange> {
    const range = offset > 0 ? { range: `bytes=${offset}-` } : {};
    return this.#exchange("GET", this.fileUrl(repository, commit, file), range, `${repository}/${file}`);
  }

  fileUrl(repository: string, commit: string, file: string): string {
    const path = file.split("/").map(encodeURIComponent).join("/");
    return `${this.#settings.endpoint}/${repository}/resolve/${commit}/${path}`;
  }

  /**
   * Runs `attempt` until it succeeds, fails for good, or has failed `retries` times without progress in between.
   * @param progress a number that grew if the failed attempt achieved something
   */
  async withRetries<T>(
    retries: number,
    what: string,
    attempt: () => Promise<T>,
    progress?: () => number,
  ): Promise<T> {
    let failures = 0;
    let before = progress?.() ?? 0;
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        const failure = this.#classify(error, what);
        const now = progress?.() ?? 0;
        if (now > before) failures = 0;
        before = now;
        if (failure.code !== "hub_unreachable" || failures >= retries) throw failure;
        const backoffMs = this.#retryDelayMs * 2 ** failures * (1 + Math.random() / 4);
        failures++;
        await this.pause(Math.max(backoffMs, (failure.retryAfterSeconds ?? 0) * 1000));
      }
    }
  }

  async pause(delayMs: number): Promise<void> {
    try {
      await sleep(
        Math.min(delayMs, 60_000),
        undefined,
        this.#signal === undefined ? {} : { signal: this.#signal },
      );
    } catch (error) {
      throw new OctavoError("request_cancelled", "the download was cancelled", { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispatcher.destroy();
  }

  /** Follows redirects by hand: the token goes to the hub's own host alone. */
  async #exchange(
    method: "GET" | "HEAD",
    url: string,
    extra: Record<string, string>,
    what: string,
  ): Promise<Exchange> {
    const home = new URL(this.#settings.endpoint);
    const trail: Headers[] = [];
    let target = new URL(url);
    for (let hop = 0; hop <= maxRedirects; hop++) {
      const authorized = target.origin === home.origin && this.#settings.token !== undefined;
      const {
        statusCode: status,
        headers,
        body,
      } = await request(target, {
        method,
        dispatcher: this.#dispatcher,
        headers: {
          ...extra,
          "accept-encoding": "identity",
          "user-agent": "octavo",
          ...(authorized && { authorization: `Bearer ${this.#settings.token}` }),
        },
        headersTimeout: this.#timeoutMs,
        bodyTimeout: this.#timeoutMs,
        ...(this.#signal !== undefined && { signal: this.#signal }),
      });
      trail.push(headers);
      const location = single(headers["location"]);
      if (status < 300 || status >= 400 || location === undefined) {
        if (status < 300 || status === 416) return { status, headers, body, trail };
        throw await hubStatusError(status, headers, body, what, this.#settings.token !== undefined);
      }
      await body.dump();
      // Where a large file lies elsewhere, the redirect itself carries its hash and size.
      if (method === "HEAD" && headers["x-linked-etag"] !== undefined)
        return { status, headers, body, trail };
      target = nextTarget(target, location, what);
    }
    throw new OctavoError("hub_unreachable", `${what}: the hub redirects more than ${maxRedirects} times`);
  }

  #classify(error: unknown, what: string): OctavoError {
    if (this.#signal?.aborted)
      return new OctavoError("request_cancelled", "the download was cancelled", { cause: error });
    if (error instanceof OctavoError) return error;
    const code =
      (error as NodeJS.ErrnoException | undefined)?.code ?? (error instanceof Error ? error.name : "unknown");
    const reason = error instanceof Error ? error.message : String(error);
    return new OctavoError(
      "hub_unreachable",
      `${what}: cannot reach ${this.#settings.endpoint} (${code}: ${reason}); check the network, HF_ENDPOINT and proxy settings`,
      { cause: error },
    );
  }
}

function createDispatcher(env: Environment, timeoutMs: number): Dispatcher {
  const httpProxy = env["http_proxy"] ?? env["HTTP_PROXY"];
  const httpsProxy = env["https_proxy"] ?? env["HTTPS_PROXY"];
  const noProxy = env["no_proxy"] ?? env["NO_PROXY"] ?? "";
  const connect = { timeout: Math.min(timeoutMs, 15_000) };
  if (!httpProxy && !httpsProxy) return new Agent({ connect });
  return new EnvHttpProxyAgent({
    connect,
    noProxy,
    ...(httpProxy && { httpProxy }),
    ...(httpsProxy && { httpsProxy }),
  });
}

function nextTarget(from: URL, location: string, what: string): URL {
  const next = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const allowed = next?.protocol === "https:" || (next?.protocol === "http:" && from.protocol === "http:");
  if (next !== undefined && allowed) return next;
  throw new OctavoError(
    "hub_unreachable",
    `${what}: the hub redirects to ${JSON.stringify(location.slice(0, 200))}, which is not followed`,
  );
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function parseSize(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

async function readText(body: Body, what: string): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    parts.push(chunk);
    length += chunk.byteLength;
    if (length > maxInfoBytes)
      throw new OctavoError(
        "integrity_failed",
        `${what}: the hub's answer is longer than ${maxInfoBytes} bytes`,
      );
  }
  return Buffer.concat(parts).toString("utf8");
}

function parseInfo(text: string, what: string): RepositoryInfo {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new OctavoError(
      "hub_unreachable",
      `${what}: the hub's answer is not JSON; is HF_ENDPOINT a model hub?`,
      { cause: error },
    );
  }
  const { sha, siblings } = (json ?? {}) as { sha?: unknown; siblings?: unknown };
  if (
    typeof sha !== "string" ||
    !/^[0-9a-f]{40}$/.test(sha) ||
    !Array.isArray(siblings) ||
    siblings.length > maxFiles
  ) {
    throw new OctavoError("hub_unreachable", `${what}: the hub's answer has no commit and file list`);
  }
  const files = (siblings as unknown[]).flatMap((entry) => {
    const name = (entry as { rfilename?: unknown } | null)?.rfilename;
    return typeof name === "string" ? [name] : [];
  });
  return { commit: sha, files };
}
