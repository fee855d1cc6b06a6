import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ArtifactFile } from "@octavo/text/files/artifact-file";
import type { Checkpoint } from "../checkpoint/checkpoint.js";
import { dequantize } from "./dequantize.js";
import { type TinyModel, writeTinyFolder, writeTinyGguf } from "./tiny-checkpoint.js";
import type { GgufValue } from "./write-gguf.js";

/** Tiny models on disk for one test file, in one temporary folder that goes with them. */
export class TinyArtifacts implements Disposable {
  readonly scratch = mkdtempSync(join(tmpdir(), "octavo-checkpoint-"));
  #counter = 0;

  freshPath(): string {
    return join(this.scratch, String(this.#counter++));
  }

  /** A folder of safetensors; `files` are laid over what is in it. */
  folder(
    changes: Partial<TinyModel> = {},
    options: Parameters<typeof writeTinyFolder>[2] = {},
    files: Readonly<Record<string, unknown>> = {},
  ): string {
    const path = this.freshPath();
    writeTinyFolder(path, changes, options);
    for (const [name, content] of Object.entries(files)) {
      writeFileSync(join(path, name), typeof content === "string" ? content : JSON.stringify(content));
    }
    return path;
  }

  gguf(changes: Partial<TinyModel> = {}, metadata: Record<string, GgufValue> = {}): string {
    const path = `${this.freshPath()}.gguf`;
    writeTinyGguf(path, changes, metadata);
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.scratch, { recursive: true, force: true });
  }
}

/** A tensor of f32, or of what becomes it. */
export function tensorValues(checkpoint: Checkpoint, name: string): Float32Array {
  const tensor = checkpoint.tensors.get(name);
  assert.ok(tensor !== undefined, `${name} is missing`);
  const file = ArtifactFile.open(tensor.path);
  const bytes = file.read(tensor.offset, tensor.byteLength);
  file[Symbol.dispose]();
  return dequantize(tensor.type as "f32", bytes);
}
