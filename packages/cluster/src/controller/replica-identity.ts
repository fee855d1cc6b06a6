import { createHash } from "node:crypto";
import { asObject, asObjects, asRecord, asString, type JsonFields, OctavoError } from "@octavo/protocol";
import { request } from "undici";

/** What a replica says of itself and shows by its logits. */
export interface ReplicaIdentity {
  readonly version: string;
  readonly artifactDigest: string;
  readonly kernelPath: string;
  /** As JSON, keys in order. */
  readonly settings: string;
  /** Digest of every bit of its logits at fixed prompts. */
  readonly fingerprint: string;
  /** Its wall clock less ours, in ms, to within half of the round trip. */
  readonly clockSkewMs: number;
  readonly cpuMhz: number | undefined;
}

/** Fixed prompts: a few words, and enough to fill several blocks of the KV cache. */
const prompts = ["The sea is", "one two three four five six seven eight nine ten ".repeat(8)];
const numTokens = 8;

/** Asks a replica who it is. Throws `target_failed` where it does not say, `target_timeout` where it takes too long. */
export async function identify(url: string, model: string, timeoutMs: number): Promise<ReplicaIdentity> {
  const signal = AbortSignal.timeout(timeoutMs);
  const sentMs = Date.now();
  const info = await call(url, "/server_info", undefined, signal);
  const tripMs = Date.now() - sentMs;
  const clock = asRecord(info["clock"]);
  return {
    version: asString(info["version"]) ?? "",
    artifactDigest: asString(info["artifact_digest"]) ?? "",
    kernelPath: asString(info["kernel_path"]) ?? "",
    settings: JSON.stringify(asRecord(info["settings"])),
    fingerprint: await fingerprintOf(url, model, signal),
    clockSkewMs: Number(clock["unix_ms"]) - (sentMs + tripMs / 2),
    cpuMhz: typeof clock["cpu_mhz"] === "number" ? clock["cpu_mhz"] : undefined,
  };
}

/** In what ways a replica differs from the one that others are held against; empty where in none. */
export function differences(found: ReplicaIdentity, reference: ReplicaIdentity): readonly string[] {
  const compared = {
    version: "version",
    artifactDigest: "artifact digest",
    kernelPath: "kernel path",
    settings: "settings",
    fingerprint: "logits fingerprint",
  } as const;
  return Object.entries(compared).flatMap(([field, name]) => {
    const [one, other] = [found[field as keyof typeof compared], reference[field as keyof typeof compared]];
    return one === other ? [] : [`${name} ${shown(one)}, the others have ${shown(other)}`];
  });
}

function shown(value: string): string {
  return value.length > 200 ? `${value.slice(0, 200)}…` : value;
}

async function fingerprintOf(url: string, model: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  for (const prompt of prompts) {
    const answer = await call(
      url,
      "/v1/completions",
      { model, prompt, max_tokens: numTokens, temperature: 0, octavo: { include_logits_digest: true } },
      signal,
    ).catch(async (thrown: unknown) => {
      // a model without a head has vectors instead
      if (!(thrown instanceof OctavoError) || thrown.code !== "target_rejected") throw thrown;
      return call(url, "/v1/embeddings", { model, input: prompt }, signal);
    });
    const notes = asObject(answer["octavo"])?.["logits_digests"];
    hash.update(JSON.stringify(notes ?? asObjects(answer["data"]).map(({ embedding }) => embedding)));
  }
  return hash.digest("hex").slice(0, 32);
}

async function call(
  url: string,
  path: string,
  body: JsonFields | undefined,
  signal: AbortSignal,
): Promise<JsonFields> {
  try {
    const answer = await request(url + path, {
      signal,
      ...(body !== undefined && {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    const found = asObject(await answer.body.json());
    if (answer.statusCode >= 400 && answer.statusCode < 500)
      throw new OctavoError("target_rejected", `${path} answered ${answer.statusCode}`);
    if (answer.statusCode !== 200 || found === undefined)
      throw new OctavoError("target_failed", `${path} answered ${answer.statusCode}`);
    return found;
  } catch (cause) {
    if (cause instanceof OctavoError) throw cause;
    throw new OctavoError(
      signal.aborted ? "target_timeout" : "target_failed",
      `${path}: ${(cause as Error).message}`,
      { cause },
    );
  }
}

/** Whether it takes requests; false where it does not answer in time. */
export async function isHealthy(url: string, timeoutMs: number): Promise<boolean> {
  try {
    const answer = await request(`${url}/health`, { signal: AbortSignal.timeout(timeoutMs) });
    await answer.body.dump();
    return answer.statusCode === 200;
  } catch {
    return false;
  }
}
