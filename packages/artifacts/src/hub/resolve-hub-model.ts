import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { selectAdapterFiles, selectFiles, type FileSelection } from "./file-selection.js";
import { cacheFailure, HubCache } from "./hub-cache.js";
import type { HubClient } from "./hub-client.js";
import { readHubSettings, type HubSettings } from "./hub-settings.js";
import { checkRepositoryPath, parseModelReference, type ModelReference } from "./model-reference.js";
import type { ResolvedModel, ResolveModelOptions } from "./resolve-model.js";
import { SnapshotFetcher } from "./snapshot-fetcher.js";

/** What `resolveModel` does with an id of the hub. */
export async function resolveHubModel(id: string, options: ResolveModelOptions): Promise<ResolvedModel> {
  const reference = parseModelReference(id);
  const settings = readHubSettings(options.env ?? process.env);
  const cache = new HubCache(settings.cacheDir, reference.repository);
  const found = await findModel(id, reference, settings, cache, options);
  const { repository, revision } = reference;
  return { path: found.path, name: id, hub: { repository, revision, commit: found.commit } };
}

interface Found {
  readonly path: string;
  readonly commit: string;
}

async function findModel(
  name: string,
  reference: ModelReference,
  settings: HubSettings,
  cache: HubCache,
  options: ResolveModelOptions,
): Promise<Found> {
  // A commit never changes: what is complete in the cache needs no question to the hub.
  const isPinned = /^[0-9a-f]{40}$/.test(reference.revision);
  if (settings.offline || isPinned) {
    const cached = await findCached(reference, cache, options);
    if (typeof cached !== "string") return cached;
    if (settings.offline) {
      throw new OctavoError(
        "artifact_not_found",
        `${name}: ${cached} (${settings.cacheDir}), and HF_HUB_OFFLINE forbids downloading it`,
      );
    }
  }
  const stop = new AbortController();
  const signal = options.signal === undefined ? stop.signal : AbortSignal.any([options.signal, stop.signal]);
  // The network client is a third of all modules; a model that is already here does without it.
  const { HubClient: Client } = await import("./hub-client.js");
  const client = new Client({
    settings,
    env: options.env ?? process.env,
    signal,
    ...(options.retryDelayMs !== undefined && { retryDelayMs: options.retryDelayMs }),
    ...(options.timeoutMs !== undefined && { timeoutMs: options.timeoutMs }),
  });
  try {
    return await download(name, reference, client, cache, options, signal, () => stop.abort());
  } catch (error) {
    if (!(error instanceof OctavoError) || error.code !== "hub_unreachable") throw error;
    const cached = await findCached(reference, cache, options);
    if (typeof cached === "string") throw error;
    options.onWarning?.(
      `${error.message}; using the cached copy of ${name} at ${cached.commit.slice(0, 12)}`,
    );
    return cached;
  } finally {
    await client[Symbol.asyncDispose]();
  }
}

/** The model as the cache has it, or a phrase that says what is missing. */
async function findCached(
  reference: ModelReference,
  cache: HubCache,
  options: ResolveModelOptions,
): Promise<Found | string> {
  const commit = await cache.readRef(reference.revision);
  if (commit === undefined) return `revision ${reference.revision} is not in the cache`;
  const files = await cache.listSnapshot(commit);
  if (files.length === 0) return `commit ${commit} is not in the cache`;
  let selection: FileSelection;
  try {
    selection = select(reference, files, options);
  } catch (error) {
    if (error instanceof OctavoError && error.code === "artifact_not_found")
      return `the cache is incomplete: ${error.message}`;
    throw error;
  }
  const root = cache.snapshotPath(commit);
  if (selection.kind === "gguf") return { path: join(root, selection.entry), commit };
  const needed = options.artifact === "adapter" ? [...selection.files] : ["config.json", "tokenizer.json"];
  if (selection.index !== undefined) needed.push(...(await readShardNames(join(root, selection.index))));
  const absent = needed.find((file) => !files.includes(file));
  return absent === undefined ? { path: root, commit } : `the cached copy lacks ${absent}`;
}

function select(
  reference: ModelReference,
  files: readonly string[],
  { artifact, patterns }: ResolveModelOptions,
): FileSelection {
  return artifact === "adapter"
    ? selectAdapterFiles(reference, files)
    : selectFiles(reference, files, patterns);
}

async function download(
  name: string,
  reference: ModelReference,
  client: HubClient,
  cache: HubCache,
  options: ResolveModelOptions,
  signal: AbortSignal,
  stop: () => void,
): Promise<Found> {
  const { repository, revision } = reference;
  const { commit, files } = await client.repositoryInfo(repository, revision);
  const selection = select(reference, files, options);
  selection.files.forEach(checkRepositoryPath);
  const fetcher = new SnapshotFetcher({
    name,
    repository,
    commit,
    client,
    cache,
    signal,
    stop,
    maxConcurrency: options.maxConcurrency ?? 4,
    onProgress: options.onProgress,
  });
  const root = cache.snapshotPath(commit);
  let wanted = selection.files;
  if (selection.kind === "folder" && selection.index !== undefined) {
    await fetcher.fetch([selection.index], false);
    const shards = await readShardNames(join(root, selection.index));
    const absent = shards.find((shard) => !files.includes(shard));
    if (absent !== undefined) {
      throw new OctavoError(
        "artifact_not_found",
        `${repository}: ${selection.index} names ${absent}, which the repository lacks`,
      );
    }
    wanted = [...wanted, ...shards];
  }
  await fetcher.fetch(wanted, true);
  await cache.writeRef(revision, commit).catch((error: unknown) => {
    throw cacheFailure(root, error);
  });
  return { path: selection.kind === "gguf" ? join(root, selection.entry) : root, commit };
}

/** @throws OctavoError `artifact_invalid` for an index without a plain weight_map */
async function readShardNames(path: string): Promise<string[]> {
  let weightMap: unknown;
  try {
    weightMap = (JSON.parse(await readFile(path, "utf8")) as { weight_map?: unknown } | null)?.weight_map;
  } catch (error) {
    throw new OctavoError("artifact_invalid", `${path}: cannot be read as JSON`, { cause: error });
  }
  if (typeof weightMap !== "object" || weightMap === null) {
    throw new OctavoError("artifact_invalid", `${path}: has no weight_map object`);
  }
  const shards = [...new Set(Object.values(weightMap as Record<string, unknown>))];
  return shards.map((shard) => {
    if (typeof shard === "string" && !shard.includes("/")) {
      checkRepositoryPath(shard);
      return shard;
    }
    throw new OctavoError("artifact_invalid", `${path}: names a shard that is no file of the same folder`);
  });
}
