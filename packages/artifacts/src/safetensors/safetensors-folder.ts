import { readdirSync } from "node:fs";
import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { readJsonFile } from "@octavo/text/files/bounded-json";
import type { StoredTensor } from "../checkpoint/checkpoint.js";
import { isComputedBuffer, readSafetensorsHeader } from "./safetensors-file.js";

const singleName = "model.safetensors";
const indexName = "model.safetensors.index.json";
const maxIndexBytes = 64 * 1024 * 1024;
const maxShards = 4096;

/**
 * All tensors of a folder in Hugging Face's layout: `model.safetensors`, or the shards named by
 * `model.safetensors.index.json`, or else the folder's only `.safetensors` file. Undefined when it has none.
 */
export function readSafetensorsFolder(folder: string): ReadonlyMap<string, StoredTensor> | undefined {
  const names = readdirSync(folder).filter((name) => name.endsWith(".safetensors"));
  if (names.includes(singleName)) return readShards(folder, [singleName]);
  const index = readJsonFile(join(folder, indexName), maxIndexBytes);
  if (index !== undefined) return readIndexed(folder, join(folder, indexName), index);
  if (names.length === 0) return undefined;
  if (names.length > 1) {
    throw artifactInvalid(
      folder,
      `has ${names.length} .safetensors files but no ${indexName} to say how they belong together`,
    );
  }
  return readShards(folder, names);
}

function readIndexed(folder: string, indexPath: string, index: unknown): ReadonlyMap<string, StoredTensor> {
  const weightMap = (index as { weight_map?: unknown } | null)?.weight_map;
  if (typeof weightMap !== "object" || weightMap === null || Array.isArray(weightMap)) {
    throw artifactInvalid(indexPath, "has no weight_map object");
  }
  const shards = new Set<string>();
  for (const [tensor, shard] of Object.entries(weightMap)) {
    if (typeof shard !== "string" || !isPlainFileName(shard)) {
      throw artifactInvalid(
        indexPath,
        `places tensor ${JSON.stringify(tensor.slice(0, 200))} in ${JSON.stringify(shard)?.slice(0, 200)}; shards must be files of the same folder`,
      );
    }
    shards.add(shard);
  }
  if (shards.size > maxShards) throw artifactInvalid(indexPath, `names ${shards.size} shards`);
  const tensors = readShards(folder, [...shards], indexPath);
  for (const [tensor, shard] of Object.entries(weightMap)) {
    const found = tensors.get(tensor);
    if (found === undefined) {
      // A buffer that the reader leaves out is no weight; any other missing tensor makes the index wrong.
      if (isComputedBuffer(tensor)) continue;
      throw artifactInvalid(
        indexPath,
        `places tensor ${JSON.stringify(tensor)} in ${shard}, which does not hold it`,
      );
    }
    if (found.path !== join(folder, shard as string)) {
      throw artifactInvalid(
        indexPath,
        `places tensor ${JSON.stringify(tensor)} in ${shard}, but it lies in ${found.path}`,
      );
    }
  }
  return tensors;
}

function readShards(
  folder: string,
  shards: readonly string[],
  indexPath?: string,
): ReadonlyMap<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  for (const shard of shards) {
    const path = join(folder, shard);
    for (const tensor of readShard(path, shard, indexPath)) {
      const other = tensors.get(tensor.name);
      if (other !== undefined) {
        throw artifactInvalid(
          path,
          `holds tensor ${JSON.stringify(tensor.name)}, which is in ${other.path} too`,
        );
      }
      tensors.set(tensor.name, tensor);
    }
  }
  return tensors;
}

function readShard(path: string, shard: string, indexPath: string | undefined): readonly StoredTensor[] {
  try {
    return readSafetensorsHeader(path).tensors;
  } catch (error) {
    if (indexPath === undefined || !(error instanceof OctavoError) || error.code !== "artifact_not_found")
      throw error;
    throw new OctavoError("artifact_not_found", `${indexPath} names the shard ${shard}, which is missing`, {
      cause: error,
    });
  }
}

/** A name that cannot leave its folder, on any platform. */
function isPlainFileName(name: string): boolean {
  return /^[^/\\:\0]{1,255}$/.test(name) && name !== "." && name !== "..";
}
