import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { asObject, asObjects, asRecord, OctavoError, parseJson } from "@octavo/protocol";
import { request } from "undici";
import { z } from "zod";
import { storedZip } from "./stored-zip.js";

/** What Octavo's part of Ray Serve is made from, as a package that Ray hands to its nodes. */
const source = readFileSync(new URL("../../../ray/octavo_serve.py", import.meta.url));
const zip = storedZip("octavo_serve.py", source);
const packageName = `_ray_pkg_octavo_${createHash("sha256").update(zip).digest("hex").slice(0, 16)}.zip`;
export const workingDir = `gcs://${packageName}`;

/** The first question makes the dashboard connect to Ray, which takes seconds. */
const timeoutMs = 30_000;
const maxAnswerBytes = 16 * 1024 * 1024;

/** Ray writes null where it has nothing to say. */
const orAbsent = <T>(schema: z.ZodType<T>) => schema.nullish().transform((value) => value ?? undefined);

const replicaDetails = z.object({
  replica_id: z.string(),
  state: z.string(),
  pid: orAbsent(z.number()),
});
const deploymentDetails = z.object({
  status: z.string(),
  message: z.string().default(""),
  replicas: z.array(replicaDetails).default([]),
});
const applicationDetails = z.object({
  status: z.string(),
  message: z.string().default(""),
  deployed_app_config: orAbsent(z.record(z.string(), z.unknown())),
  deployments: z.record(z.string(), deploymentDetails).default({}),
});
const instanceDetails = z.object({
  http_options: orAbsent(z.object({ port: z.number() })),
  applications: z.record(z.string(), applicationDetails).default({}),
});
const directoryDetails = z.record(z.string(), z.object({ url: z.string() }));

export type RayServeState = z.output<typeof instanceDetails>;
export type RayReplicaDetails = z.output<typeof replicaDetails>;

export interface RayServeClientOptions {
  /** Of the head's dashboard, such as `http://127.0.0.1:8265`. */
  readonly dashboard: string;
  /** Of Serve's proxy on the head; undefined where it is the dashboard's host and the port that Serve names. */
  readonly proxy: string | undefined;
}

/** Ray Serve's REST API (version 2, Ray 2.60), and what Octavo's directory answers through Serve's proxy. */
export class RayServeClient {
  readonly #options: RayServeClientOptions;
  #proxy: string | undefined;

  constructor(options: RayServeClientOptions) {
    this.#options = options;
    this.#proxy = options.proxy;
  }

  async state(): Promise<RayServeState> {
    const { text } = await this.#ask("GET", "/api/serve/applications/");
    const state = read(instanceDetails, text, "what Serve runs");
    if (this.#options.proxy === undefined && state.http_options !== undefined) {
      const url = new URL(this.#options.dashboard);
      url.port = String(state.http_options.port);
      this.#proxy = url.origin;
    }
    return state;
  }

  /** Applications that are not named are deleted. */
  async put(config: object): Promise<void> {
    // Ray drops packages that nothing uses
    const path = `/api/packages/gcs/${packageName}`;
    const known = await this.#ask("GET", path, undefined, [404]);
    if (known.status === 404) await this.#ask("PUT", path, zip);
    await this.#ask("PUT", "/api/serve/applications/", JSON.stringify(config));
  }

  /** Resources of each node that is alive, such as `CPU`. */
  async nodes(): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const { text } = await this.#ask("GET", "/nodes?view=summary");
    return asObjects(asObject(asObject(parseJson(text)?.value)?.["data"])?.["summary"])
      .map(({ raylet }) => asRecord(raylet))
      .filter(({ state }) => state === "ALIVE")
      .map(({ resourcesTotal }) => asRecord(resourcesTotal));
  }

  /** Where replicas listen, by their ids; undefined where the directory does not answer, as before it was started. */
  async addresses(rejected: readonly string[]): Promise<ReadonlyMap<string, string> | undefined> {
    if (this.#proxy === undefined) return undefined;
    try {
      const body = rejected.length === 0 ? undefined : JSON.stringify({ rejected });
      const { text } = await this.#ask(body === undefined ? "GET" : "POST", `${this.#proxy}/octavo`, body);
      const found = read(directoryDetails, text, "where replicas listen");
      return new Map(Object.entries(found).map(([id, { url }]) => [id, url]));
    } catch {
      return undefined;
    }
  }

  async #ask(
    method: "GET" | "PUT" | "POST",
    path: string,
    body?: string | Buffer,
    accepted: readonly number[] = [],
  ): Promise<{ readonly status: number; readonly text: string }> {
    const { dashboard } = this.#options;
    try {
      const answer = await request(new URL(path, dashboard), {
        method,
        signal: AbortSignal.timeout(timeoutMs),
        ...(body !== undefined && { body }),
        ...(typeof body === "string" && { headers: { "content-type": "application/json" } }),
      });
      const text = await readBounded(answer.body);
      if (answer.statusCode < 300 || accepted.includes(answer.statusCode))
        return { status: answer.statusCode, text };
      throw new OctavoError(
        "runner_unavailable",
        `Ray answered ${method} ${path} with ${answer.statusCode}: ${text.trim().slice(-400)}`,
      );
    } catch (cause) {
      if (cause instanceof OctavoError) throw cause;
      throw new OctavoError(
        "runner_unavailable",
        `Ray's dashboard at ${new URL(dashboard).origin} does not answer (${OctavoError.from(cause).message})`,
        { cause },
      );
    }
  }
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxAnswerBytes)
      throw new OctavoError("runner_unavailable", `Ray's answer has more than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function read<T>(schema: z.ZodType<T>, text: string, what: string): T {
  const result = schema.safeParse(parseJson(text)?.value);
  if (result.success) return result.data;
  throw new OctavoError(
    "runner_unavailable",
    `Ray does not say ${what} as its REST API of version 2 does: ${text.slice(0, 200)}`,
  );
}
