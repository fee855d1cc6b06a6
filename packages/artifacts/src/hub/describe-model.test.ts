import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, beforeEach, test } from "node:test";
import { OctavoError, type ErrorCode } from "@octavo/protocol/errors";
import { MockHub, type MockFile } from "../testing/mock-hub.js";
import { writeTinyFolder, writeTinyGguf } from "../testing/tiny-checkpoint.js";
import { describeModel } from "./describe-model.js";

const commit = "0123456789abcdef0123456789abcdef01234567";
const scratch = mkdtempSync(join(tmpdir(), "octavo-describe-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

const folder = join(scratch, "folder");
const ggufPath = join(scratch, "tiny-Q4_0.gguf");
writeTinyFolder(folder);
writeTinyGguf(ggufPath);
const gguf = readFileSync(ggufPath);

let hub: MockHub;
let cacheDir: string;
beforeEach(async () => {
  hub = await MockHub.start();
  cacheDir = mkdtempSync(join(scratch, "cache-"));
  const files: Record<string, MockFile> = {};
  for (const name of readdirSync(folder)) {
    files[name] = { content: readFileSync(join(folder, name)), isLarge: name.endsWith(".safetensors") };
  }
  hub.repositories.set("acme/tiny", { commit, files });
  hub.repositories.set("acme/tiny-gguf", {
    commit,
    files: { "tiny-Q4_0.gguf": { content: Buffer.concat([gguf, Buffer.alloc(8 << 20)]), isLarge: true } },
  });
});
afterEach(async () => hub[Symbol.asyncDispose]());

const options = (env: Record<string, string> = {}) => ({
  env: { HF_ENDPOINT: hub.url, HF_HUB_CACHE: cacheDir, HF_HOME: join(scratch, "home"), ...env },
  retryDelayMs: 1,
});

async function rejects(promise: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(
    promise,
    (error) => error instanceof OctavoError && error.code === code && message.test(error.message),
  );
}

test("local folders, config.json and GGUF files are described without the network", async () => {
  const described = await describeModel(folder, options());
  assert.equal(described.source.kind, "config");
  assert.ok(
    described.tensors?.some(({ name, byteLength }) => name === "model.embed_tokens.weight" && byteLength > 0),
  );
  const config = await describeModel(join(folder, "config.json"), options());
  assert.equal(config.tensors, undefined);
  const file = await describeModel(ggufPath, options());
  assert.equal(file.source.kind === "gguf" && file.source.metadata.get("general.architecture"), "llama");
  assert.equal(hub.requests.length, 0);
});

test("of a hub model config.json alone is downloaded, and asked for once", async () => {
  const first = await describeModel("acme/tiny", options());
  assert.equal(first.source.kind, "config");
  assert.equal(first.tensors, undefined);
  assert.deepEqual(
    hub.requests
      .filter(({ method, path }) => method === "GET" && !path.includes("/api/"))
      .map(({ path }) => path),
    [`/acme/tiny/resolve/${commit}/config.json`],
  );
  const asked = hub.requests.length;
  const pinned = await describeModel(`acme/tiny@${commit}`, options({ HF_HUB_OFFLINE: "1" }));
  assert.deepEqual(pinned.source, first.source);
  assert.equal(hub.requests.length, asked);
});

test("a GGUF file that cannot be had leaves nothing behind", async () => {
  const { TMPDIR } = process.env;
  const empty = mkdtempSync(join(scratch, "temporary-"));
  process.env["TMPDIR"] = empty;
  try {
    hub.faults.set("tiny-Q4_0.gguf", [{ kind: "status", status: 403 }]);
    await rejects(describeModel("acme/tiny-gguf:Q4_0", options()), "hub_denied", /tiny/);
    assert.deepEqual(readdirSync(empty), []);
  } finally {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  }
});

test("of a GGUF on the hub the header is read and nothing kept", async () => {
  const { source, tensors } = await describeModel("acme/tiny-gguf:Q4_0", options());
  assert.equal(source.kind === "gguf" && source.metadata.get("general.architecture"), "llama");
  assert.ok((tensors?.length ?? 0) > 0);
  assert.ok(!readdirSync(cacheDir).some((name) => name.includes("tiny-gguf")));
});

test("what cannot be described is refused with its reason", async () => {
  await rejects(
    describeModel("acme/tiny", options({ HF_HUB_OFFLINE: "1" })),
    "artifact_not_found",
    /HF_HUB_OFFLINE/,
  );
  await rejects(describeModel("./missing", options()), "artifact_not_found", /no such file/);
  await rejects(describeModel("acme/none", options()), "artifact_not_found", /acme\/none/);
  const other = join(scratch, "weights.bin");
  writeFileSync(other, "x");
  await rejects(describeModel(other, options()), "artifact_invalid", /neither a folder/);
  const cut = join(scratch, "cut.gguf");
  writeFileSync(cut, gguf);
  truncateSync(cut, gguf.length - 40);
  await rejects(describeModel(cut, options()), "artifact_invalid", /truncated/);
});
