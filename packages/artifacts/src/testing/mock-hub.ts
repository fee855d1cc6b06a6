import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface MockFile {
  readonly content: Uint8Array;
  /** Large files are redirected to the CDN and named by sha256, small ones served in place and named by git's sha1. */
  readonly isLarge?: boolean;
  /** A size to claim instead of the true one. */
  readonly announcedSize?: number;
}

interface MockRepository {
  readonly commit: string;
  readonly files: Readonly<Record<string, MockFile>>;
  /** Needs this token. */
  readonly token?: string;
  readonly gated?: boolean;
  /** Branches and tags besides main. */
  readonly refs?: readonly string[];
}

interface MockRequest {
  readonly server: "hub" | "cdn";
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
}

/** What goes wrong with the next downloads of a file, in order; one entry is used up by each GET. */
type MockFault =
  /** The connection breaks after this many bytes of the body, once `when` says so (the client has them, for example). */
  | { readonly kind: "cut"; readonly afterBytes: number; readonly when?: () => Promise<void> }
  /** One byte of the body is flipped. */
  | { readonly kind: "corrupt" }
  /** Range is not honoured: 200 with everything. */
  | { readonly kind: "ignore-range" }
  | { readonly kind: "status"; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** More bytes than the hash's owner has. */
  | { readonly kind: "append"; readonly extra: Uint8Array }
  | { readonly kind: "none" };

/** A model hub and its CDN on two ports of 127.0.0.1, speaking what huggingface.co speaks of the download protocol. */
export class MockHub implements AsyncDisposable {
  readonly requests: MockRequest[] = [];
  readonly repositories = new Map<string, MockRepository>();
  /** By file path. */
  readonly faults = new Map<string, MockFault[]>();
  /** Awaited before a file's body is sent. */
  beforeBody: ((path: string) => Promise<void>) | undefined;
  readonly #hub: Server;
  readonly #cdn: Server;

  private constructor() {
    this.#hub = createServer((request, response) => void this.#answer("hub", request, response));
    this.#cdn = createServer((request, response) => void this.#answer("cdn", request, response));
  }

  static async start(): Promise<MockHub> {
    const mock = new MockHub();
    for (const server of [mock.#hub, mock.#cdn]) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    }
    return mock;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`;
  }

  get cdnUrl(): string {
    return `http://127.0.0.1:${(this.#cdn.address() as AddressInfo).port}`;
  }

  downloads(file: string): readonly MockRequest[] {
    return this.requests.filter((request) => request.method === "GET" && request.path.endsWith(`/${file}`));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.#hub, this.#cdn]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  async #answer(server: "hub" | "cdn", request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
    const { authorization, range } = request.headers;
    this.requests.push({ server, method: request.method ?? "", path, authorization, range });
    const info = /^\/api\/models\/([^/]+\/[^/]+)\/revision\/(.+)$/.exec(path);
    if (info !== null) return this.#answerInfo(response, info[1] ?? "", info[2] ?? "", authorization);
    const file = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
    if (file !== null) return this.#answerFile(server, request, response, file[1] ?? "", file[3] ?? "");
    return fail(response, 404);
  }

  #answerInfo(
    response: ServerResponse,
    name: string,
    revision: string,
    authorization: string | undefined,
  ): void {
    const repository = this.repositories.get(name);
    // The real hub does not tell a hidden repository from a missing one.
    if (repository === undefined || !allowed(repository, authorization, false))
      return fail(response, 401, "RepoNotFound");
    if (revision !== "main" && revision !== repository.commit && !repository.refs?.includes(revision)) {
      return fail(response, 404, "RevisionNotFound");
    }
    const siblings = Object.keys(repository.files).map((rfilename) => ({ rfilename }));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: name, sha: repository.commit, siblings }));
  }

  async #answerFile(
    server: "hub" | "cdn",
    request: IncomingMessage,
    response: ServerResponse,
    name: string,
    path: string,
  ): Promise<void> {
    const repository = this.repositories.get(name);
    const file = repository?.files[path];
    if (repository === undefined) return fail(response, 401, "RepoNotFound");
    if (server === "hub" && !allowed(repository, request.headers.authorization, true)) {
      return fail(response, repository.gated ? 403 : 401, repository.gated ? "GatedRepo" : "RepoNotFound");
    }
    if (file === undefined) return fail(response, 404, "EntryNotFound");
    const etag = blobName(file);
    response.setHeader("x-repo-commit", repository.commit);
    if (server === "hub" && file.isLarge === true) {
      response.writeHead(302, {
        location: `${this.cdnUrl}/${name}/resolve/cdn/${path}`,
        "x-linked-etag": `"${etag}"`,
        "x-linked-size": String(file.announcedSize ?? file.content.byteLength),
      });
      response.end();
      return;
    }
    response.setHeader("etag", server === "hub" ? `"${etag}"` : `"cdn-own-name"`);
    if (request.method === "HEAD") {
      response.setHeader("content-length", file.content.byteLength);
      response.end();
      return;
    }
    await this.beforeBody?.(path);
    this.#sendBody(request, response, file, this.faults.get(path)?.shift() ?? { kind: "none" });
  }

  #sendBody(request: IncomingMessage, response: ServerResponse, file: MockFile, fault: MockFault): void {
    if (fault.kind === "status") {
      response.writeHead(fault.status, { ...fault.headers });
      response.end();
      return;
    }
    let content = Buffer.from(file.content);
    if (fault.kind === "corrupt") content[content.length >> 1] = (content[content.length >> 1] ?? 0) ^ 0xff;
    if (fault.kind === "append") content = Buffer.concat([content, fault.extra]);
    const start =
      fault.kind === "ignore-range"
        ? 0
        : Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    if (start > 0 && start >= content.length) return fail(response, 416);
    if (start > 0) {
      response.statusCode = 206;
      response.setHeader("content-range", `bytes ${start}-${content.length - 1}/${content.length}`);
    }
    const body = content.subarray(start);
    response.setHeader("content-length", body.length);
    if (fault.kind !== "cut") {
      response.end(body);
      return;
    }
    response.write(body.subarray(0, fault.afterBytes), () => {
      void (fault.when?.() ?? Promise.resolve()).finally(() => response.destroy());
    });
  }
}

/** What the hub names a file's bytes. */
export function blobName(file: MockFile): string {
  if (file.isLarge === true) return createHash("sha256").update(file.content).digest("hex");
  return createHash("sha1").update(`blob ${file.content.byteLength}\0`).update(file.content).digest("hex");
}

function allowed(repository: MockRepository, authorization: string | undefined, forFiles: boolean): boolean {
  if (repository.token === undefined || (repository.gated === true && !forFiles)) return true;
  return authorization === `Bearer ${repository.token}`;
}

function fail(response: ServerResponse, status: number, errorCode?: string): void {
  response.writeHead(status, errorCode === undefined ? {} : { "x-error-code": errorCode });
  response.end();
}
