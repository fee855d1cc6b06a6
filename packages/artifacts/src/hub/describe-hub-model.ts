import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { describeFiles, describeGgufHeader, type ModelDescription } from "../checkpoint/describe-files.js";
import type { DescribeModelOptions } from "./describe-model.js";
import { selectFiles } from "./file-selection.js";
import { HubCache } from "./hub-cache.js";
import type { HubClient } from "./hub-client.js";
import { readHubSettings } from "./hub-settings.js";
import { checkRepositoryPath, type ModelReference, parseModelReference } from "./model-reference.js";
import { SnapshotFetcher } from "./snapshot-fetcher.js";

const configFile = "config.json";
/** A GGUF header with 256k tokens stays below 40 MB. */
const maxHeaderBytes = 256 * 1024 * 1024;
const firstHeaderBytes = 1024 * 1024;

/** What `describeModel` does with an id of the hub. */
export async function describeHubModel(id: string, options: DescribeModelOptions): Promise<ModelDescription> {
  const env = options.env ?? process.env;
  const reference = parseModelReference(id);
  const settings = readHubSettings(env);
  const cache = new HubCache(settings.cacheDir, reference.repository);
  const cached = await describeCached(reference, cache);
  if (cached !== undefined) return cached;
  if (settings.offline) {
    throw new OctavoError(
      "artifact_not_found",
      `${id} is not in the cache (${settings.cacheDir}), and HF_HUB_OFFLINE forbids asking the hub for its configuration`,
    );
  }
  const stop = new AbortController();
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([options.signal, stop.signal]);
  // The network client is a third of all modules; a model that is already here does without it.
  const { HubClient: Client } = await import("./hub-client.js");
  const client = new Client({
    settings,
    env,
    signal,
    ...(options.retryDelayMs !== undefined && { retryDelayMs: options.retryDelayMs }),
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
  });
  try {
    return await describeRemote(id, reference, client, cache, signal, () => stop.abort());
  } finally {
    await client[Symbol.asyncDispose]();
  }
}

async function describeCached(
  reference: ModelReference,
  cache: HubCache,
): Promise<ModelDescription | undefined> {
  const commit = await cache.readRef(reference.revision);
  if (commit === undefined) return undefined;
  const files = await cache.listSnapshot(commit);
  const root = cache.snapshotPath(commit);
  if (namesGguf(reference) || !files.includes(configFile)) {
    const gguf = files.length === 0 ? undefined : ggufEntry(reference, files);
    return gguf === undefined ? undefined : describeFiles(join(root, gguf));
  }
  // A folder with the config alone, or with half of its weights, is described by the config.
  try {
    return describeFiles(root);
  } catch (error) {
    if (!(error instanceof OctavoError) || !error.code.startsWith("artifact_")) throw error;
    return describeFiles(join(root, configFile));
  }
}

async function describeRemote(
  name: string,
  reference: ModelReference,
  client: HubClient,
  cache: HubCache,
  signal: AbortSignal,
  stop: () => void,
): Promise<ModelDescription> {
  const { repository, revision } = reference;
  const { commit, files } = await client.repositoryInfo(repository, revision);
  if (!namesGguf(reference) && files.includes(configFile)) {
    const target = { name, repository, commit, client, cache, signal, stop, maxConcurrency: 1 };
    await new SnapshotFetcher({ ...target, onProgress: undefined }).fetch([configFile], false);
    return describeFiles(join(cache.snapshotPath(commit), configFile));
  }
  const selection = selectFiles(reference, files);
  if (selection.kind !== "gguf") {
    throw new OctavoError("artifact_not_found", `${repository} has no ${configFile}`);
  }
  checkRepositoryPath(selection.entry);
  return await describeRemoteGguf(client, repository, commit, selection.entry);
}

/** Reads the file's beginning until it holds the header. */
async function describeRemoteGguf(
  client: HubClient,
  repository: string,
  commit: string,
  file: string,
): Promise<ModelDescription> {
  const { body } = await client.openFile(repository, commit, file, 0);
  const folder = await mkdtemp(join(tmpdir(), "octavo-header-"));
  let handle: FileHandle | undefined;
  try {
    const path = join(folder, "header.gguf");
    handle = await open(path, "w");
    let received = 0;
    let wanted = firstHeaderBytes;
    let failure: unknown;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      await handle.write(chunk, 0, chunk.byteLength, received);
      received += chunk.byteLength;
      if (received < wanted) continue;
      const description = tryHeader(path);
      if (!(description instanceof OctavoError)) return description;
      failure = description;
      if (received >= maxHeaderBytes) throw failure;
      wanted = received * 2;
    }
    const description = tryHeader(path);
    if (description instanceof OctavoError) throw description;
    return description;
  } finally {
    body.destroy();
    await handle?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function tryHeader(path: string): ModelDescription | OctavoError {
  try {
    return describeGgufHeader(path);
  } catch (error) {
    return OctavoError.from(error);
  }
}

function namesGguf({ file, quantization }: ModelReference): boolean {
  return file !== undefined || quantization !== undefined;
}

function ggufEntry(reference: ModelReference, files: readonly string[]): string | undefined {
  try {
    const selection = selectFiles(reference, files);
    return selection.kind === "gguf" ? selection.entry : undefined;
  } catch {
    return undefined;
  }
}
