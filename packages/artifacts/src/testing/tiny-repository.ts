import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, beforeEach } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { OctavoError, type ErrorCode } from "@octavo/protocol/errors";
import type { ResolveModelOptions } from "../hub/resolve-model.js";
import { blobName, type MockFile, MockHub } from "./mock-hub.js";
import { writeTinyFolder } from "./tiny-checkpoint.js";

export const commit = "0123456789abcdef0123456789abcdef01234567";

/** A hub with the repository `acme/tiny`, and a cache: both new for every test of the file that makes one. */
export class TinyRepository {
  readonly scratch = mkdtempSync(join(tmpdir(), "octavo-hub-"));
  #hub: MockHub | undefined;
  #cacheDir = "";
  #files: Record<string, MockFile> = {};

  constructor() {
    beforeEach(async () => {
      this.#hub = await MockHub.start();
      this.#cacheDir = this.freshFolder("cache-");
      this.serveShards(1);
    });
    afterEach(() => this.#hub?.[Symbol.asyncDispose]());
    after(() => rmSync(this.scratch, { recursive: true, force: true }));
  }

  get hub(): MockHub {
    assert.ok(this.#hub !== undefined, "is there while a test runs");
    return this.#hub;
  }

  get cacheDir(): string {
    return this.#cacheDir;
  }

  get files(): Record<string, MockFile> {
    return this.#files;
  }

  get weights(): MockFile {
    return this.#files["model.safetensors"] as MockFile;
  }

  /** Where the weights lie while they are fetched. */
  get partPath(): string {
    return join(this.#cacheDir, "models--acme--tiny", "blobs", `${blobName(this.weights)}.incomplete`);
  }

  freshFolder(prefix: string): string {
    return mkdtempSync(join(this.scratch, prefix));
  }

  /** Makes the repository one whose weights are in so many files. */
  serveShards(shards: number): void {
    const folder = this.freshFolder("model-");
    writeTinyFolder(folder, {}, { shards });
    this.#files = {
      "README.md": { content: Buffer.from("# tiny") },
      "pytorch_model.bin": { content: Buffer.from("never fetched"), isLarge: true },
    };
    for (const name of readdirSync(folder)) {
      const content = readFileSync(join(folder, name));
      this.#files[name] = { content, isLarge: name.endsWith(".safetensors") };
    }
    this.hub.repositories.set("acme/tiny", { commit, files: this.#files });
  }

  options(more: Partial<ResolveModelOptions> = {}, env: Record<string, string> = {}): ResolveModelOptions {
    const home = join(this.scratch, "home");
    return {
      env: { HF_ENDPOINT: this.hub.url, HF_HUB_CACHE: this.#cacheDir, HF_HOME: home, ...env },
      retryDelayMs: 1,
      ...more,
    };
  }

  /** Waits until the part on disk has grown to `bytes`. */
  async partHas(bytes: number): Promise<void> {
    while (!existsSync(this.partPath) || statSync(this.partPath).size < bytes) await sleep(2);
  }
}

export async function rejects(promise: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof OctavoError, `not an OctavoError: ${String(error)}`);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });
}
