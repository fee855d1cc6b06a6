import { createHash } from "node:crypto";
import { open, type FileHandle } from "node:fs/promises";
import type { Checkpoint } from "./checkpoint.js";

/** Bytes read at each end of a tensor. */
const sampleBytes = 4096;

/**
 * Names an artifact by its content: every tensor's name, type, shape and the bytes at both of its ends. Wherever the files lie, equal
 * artifacts have equal digests; another version, quantisation or a truncated download has another. It takes milliseconds, not a
 * reading of all bytes: single damaged bytes are the integrity check's matter.
 */
export async function artifactDigest({ tensors }: Pick<Checkpoint, "tensors">): Promise<string> {
  const hash = createHash("sha256");
  const files = new Map<string, FileHandle>();
  const bytes = Buffer.allocUnsafe(sampleBytes);
  try {
    for (const name of [...tensors.keys()].toSorted()) {
      const tensor = tensors.get(name);
      if (tensor === undefined) continue;
      const { type, shape, path, offset, byteLength } = tensor;
      hash.update(JSON.stringify([name, type, shape, byteLength]));
      let file = files.get(path);
      if (file === undefined) files.set(path, (file = await open(path)));
      const length = Math.min(sampleBytes, byteLength);
      for (const at of [offset, offset + byteLength - length]) {
        const { bytesRead } = await file.read(bytes, 0, length, at);
        hash.update(bytes.subarray(0, bytesRead));
      }
    }
  } finally {
    for (const file of files.values()) await file.close();
  }
  return `sha256:${hash.digest("hex")}`;
}
