import { lstatSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { type Environment, readHubSettings } from "./hub-settings.js";
import { parseModelReference } from "./model-reference.js";

/** A repository in the cache that Python's huggingface_hub shares. */
export interface CachedModel {
  /** `org/name` */
  readonly repository: string;
  readonly folder: string;
  /** Bytes on disk, parts of interrupted downloads included. */
  readonly bytes: number;
  /** Bytes of interrupted downloads, which the next one goes on with. */
  readonly incompleteBytes: number;
  /** When the youngest snapshot was made: ms since 1970. */
  readonly modifiedMs: number;
  /** The snapshot of `main`, else the youngest; undefined while none is there. */
  readonly snapshot: string | undefined;
  /** Its GGUF files, by their paths in the repository. */
  readonly ggufFiles: readonly string[];
  readonly hasSafetensors: boolean;
}

/** All models of the cache, by name. An absent cache has none. */
export function listCachedModels(env: Environment = process.env): readonly CachedModel[] {
  const { cacheDir } = readHubSettings(env);
  return entriesOf(cacheDir)
    .filter((name) => name.startsWith("models--"))
    .map((name) => describeFolder(join(cacheDir, name), name.slice("models--".length).replace("--", "/")))
    .toSorted((one, other) => (one.repository < other.repository ? -1 : 1));
}

/**
 * Removes a repository from the cache with all of its revisions.
 * @returns what was removed
 * @throws OctavoError `artifact_not_found` for one that is not there
 */
export function removeCachedModel(id: string, env: Environment = process.env): CachedModel {
  // Checks the name: it becomes a path.
  const { repository } = parseModelReference(id);
  const { cacheDir } = readHubSettings(env);
  const model = listCachedModels(env).find((each) => each.repository === repository);
  if (model === undefined)
    throw new OctavoError("artifact_not_found", `${repository} is not in the cache (${cacheDir})`);
  rmSync(model.folder, { recursive: true, force: true });
  rmSync(join(cacheDir, ".locks", `models--${repository.replaceAll("/", "--")}`), {
    recursive: true,
    force: true,
  });
  return model;
}

function describeFolder(folder: string, repository: string): CachedModel {
  const blobs = join(folder, "blobs");
  const sizes = entriesOf(blobs).map((name) => ({ name, bytes: sizeOf(join(blobs, name)) }));
  const snapshots = entriesOf(join(folder, "snapshots"))
    .map((commit) => ({ commit, path: join(folder, "snapshots", commit) }))
    .map((entry) => ({ ...entry, modifiedMs: statSync(entry.path).mtimeMs }))
    .toSorted((one, other) => other.modifiedMs - one.modifiedMs);
  const main = readRef(join(folder, "refs", "main"));
  const snapshot = snapshots.find(({ commit }) => commit === main) ?? snapshots[0];
  const files = snapshot === undefined ? [] : filesOf(snapshot.path);
  const copied = files.filter(({ path }) => !lstatSync(path).isSymbolicLink());
  return {
    repository,
    folder,
    // Where links cannot be made, snapshots hold copies.
    bytes: [...sizes, ...copied].reduce((sum, { bytes }) => sum + bytes, 0),
    incompleteBytes: sizes
      .filter(({ name }) => name.endsWith(".incomplete"))
      .reduce((sum, { bytes }) => sum + bytes, 0),
    modifiedMs: snapshot?.modifiedMs ?? 0,
    snapshot: snapshot?.path,
    ggufFiles: files.filter(({ name }) => name.endsWith(".gguf")).map(({ name }) => name),
    hasSafetensors: files.some(({ name }) => name.endsWith(".safetensors")),
  };
}

/** Files whose bytes are there. */
function filesOf(root: string): { name: string; path: string; bytes: number }[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" }).flatMap((name) => {
    const path = join(root, name);
    try {
      const stats = statSync(realpathSync(path));
      return stats.isFile() ? [{ name: name.replaceAll("\\", "/"), path, bytes: stats.size }] : [];
    } catch {
      return [];
    }
  });
}

function readRef(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}
