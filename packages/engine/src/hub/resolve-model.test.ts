import assert from "node:assert/strict";
import { fork } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { OctavoError, type ErrorCode } from "@octavo/protocol";
import { blobName, MockHub, type MockFile } from "../testing/mock-hub.js";
import { Random } from "../testing/random.js";
import { writeTinyFolder } from "../testing/tiny-checkpoint.js";
import { openCheckpoint } from "../weights/open-checkpoint.js";
import type { DownloadProgress } from "./download-progress.js";
import { resolveModel, type ResolveModelOptions } from "./resolve-model.js";

const commit = "0123456789abcdef0123456789abcdef01234567";
const scratch = mkdtempSync(join(tmpdir(), "octavo-hub-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

let hub: MockHub;
let cacheDir: string;
let files: Record<string, MockFile>;

beforeEach(async () => {
  hub = await MockHub.start();
  cacheDir = mkdtempSync(join(scratch, "cache-"));
  files = tinyFiles(1);
  hub.repositories.set("acme/tiny", { commit, files });
});
afterEach(async () => hub[Symbol.asyncDispose]());

function tinyFiles(shards: number): Record<string, MockFile> {
  const folder = mkdtempSync(join(scratch, "model-"));
  writeTinyFolder(folder, {}, { shards });
  const found: Record<string, MockFile> = {
    "README.md": { content: Buffer.from("# tiny") },
    "pytorch_model.bin": { content: Buffer.from("never fetched"), isLarge: true },
  };
  for (const name of readdirSync(folder)) {
    found[name] = { content: readFileSync(join(folder, name)), isLarge: name.endsWith(".safetensors") };
  }
  return found;
}

function options(
  more: Partial<ResolveModelOptions> = {},
  env: Record<string, string> = {},
): ResolveModelOptions {
  return {
    env: { HF_ENDPOINT: hub.url, HF_HUB_CACHE: cacheDir, HF_HOME: join(scratch, "home"), ...env },
    retryDelayMs: 1,
    ...more,
  };
}

async function rejects(promise: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.ok(error instanceof OctavoError, `not an OctavoError: ${String(error)}`);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });
}

function weights(): MockFile {
  return files["model.safetensors"] as MockFile;
}

function partPath(file: MockFile): string {
  return join(cacheDir, "models--acme--tiny", "blobs", `${blobName(file)}.incomplete`);
}

/** Waits until the part on disk has grown to `bytes`. */
async function partHas(bytes: number): Promise<void> {
  const path = partPath(weights());
  while (!existsSync(path) || statSync(path).size < bytes) await sleep(2);
}

describe("downloading", () => {
  it("lays the cache out as huggingface_hub does and yields a checkpoint", async () => {
    const model = await resolveModel("acme/tiny", options());
    const root = join(cacheDir, "models--acme--tiny");
    assert.equal(model.path, join(root, "snapshots", commit));
    assert.deepEqual(model.hub, { repository: "acme/tiny", revision: "main", commit });
    assert.equal(readFileSync(join(root, "refs", "main"), "utf8"), commit);
    const link = join(model.path, "model.safetensors");
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.equal(readlinkSync(link), join("..", "..", "blobs", blobName(weights())));
    assert.deepEqual(readFileSync(link), Buffer.from(weights().content));
    assert.deepEqual(
      readdirSync(model.path).toSorted(),
      [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
      ],
      "neither README nor pickles are fetched",
    );
    assert.deepEqual(
      readdirSync(join(root, "blobs")).filter((name) => name.endsWith(".incomplete")),
      [],
    );
    const checkpoint = await openCheckpoint(model.path, { name: model.name });
    assert.equal(checkpoint.name, "acme/tiny");
  });

  it("fetches the shards that the index names", async () => {
    files = tinyFiles(3);
    hub.repositories.set("acme/tiny", { commit, files });
    const model = await resolveModel("acme/tiny", options());
    const checkpoint = await openCheckpoint(model.path);
    assert.equal(new Set([...checkpoint.tensors.values()].map((tensor) => tensor.path)).size, 3);
  });

  it("names a shard that the repository lacks", async () => {
    files = tinyFiles(3);
    delete files["model-00002-of-00003.safetensors"];
    hub.repositories.set("acme/tiny", { commit, files });
    await rejects(
      resolveModel("acme/tiny", options()),
      "artifact_not_found",
      /model-00002-of-00003\.safetensors/,
    );
  });

  it("does not fetch again what is there", async () => {
    await resolveModel("acme/tiny", options());
    const before = hub.requests.length;
    await resolveModel("acme/tiny", options());
    const again = hub.requests.slice(before);
    assert.ok(again.every((request) => request.method === "HEAD" || request.path.startsWith("/api/")));
  });

  it("follows a revision, and asks nothing for a commit that is complete", async () => {
    hub.repositories.set("acme/tiny", { commit, files, refs: ["refs/pr/1"] });
    await resolveModel("acme/tiny@refs/pr/1", options());
    assert.equal(
      readFileSync(join(cacheDir, "models--acme--tiny", "refs", "refs", "pr", "1"), "utf8"),
      commit,
    );
    const before = hub.requests.length;
    await resolveModel(`acme/tiny@${commit}`, options());
    assert.equal(hub.requests.length, before);
  });

  it("sends the token to the hub and not to the CDN it redirects to", async () => {
    hub.repositories.set("acme/tiny", { commit, files, token: "hf_secret" });
    await resolveModel("acme/tiny", options({}, { HF_TOKEN: "hf_secret" }));
    const cdn = hub.requests.filter((request) => request.server === "cdn");
    assert.ok(cdn.length > 0);
    assert.ok(cdn.every((request) => request.authorization === undefined));
    const own = hub.requests.filter((request) => request.server === "hub");
    assert.ok(own.every((request) => request.authorization === "Bearer hf_secret"));
  });

  it("reads the token file of a logged-in user", async () => {
    hub.repositories.set("acme/tiny", { commit, files, token: "hf_filed" });
    const home = mkdtempSync(join(scratch, "home-"));
    writeFileSync(join(home, "token"), "hf_filed\n");
    const model = await resolveModel("acme/tiny", options({}, { HF_HOME: home }));
    assert.ok(existsSync(model.path));
  });

  it("reports progress up to the last byte", async () => {
    const seen: DownloadProgress[] = [];
    await resolveModel("acme/tiny", options({ onProgress: (progress) => seen.push(progress) }));
    const last = seen.at(-1);
    assert.ok(last?.done);
    assert.equal(last.finishedFiles, last.numFiles);
    assert.equal(last.receivedBytes, last.totalBytes);
    assert.equal(last.presentBytes, 0);
    for (let i = 1; i < seen.length; i++)
      assert.ok((seen[i]?.receivedBytes ?? 0) >= (seen[i - 1]?.receivedBytes ?? 0));
  });

  it("narrows by patterns", async () => {
    const patterns = { ignore: ["generation_*"] };
    const model = await resolveModel("acme/tiny", options({ patterns }));
    assert.ok(!existsSync(join(model.path, "generation_config.json")));
    assert.ok(existsSync(join(model.path, "config.json")));
  });
});

describe("resuming", () => {
  it("goes on after cut connections with the bytes it has", async () => {
    hub.faults.set("model.safetensors", [
      { kind: "cut", afterBytes: 1000, when: () => partHas(1000) },
      { kind: "cut", afterBytes: 2000, when: () => partHas(3000) },
    ]);
    await resolveModel("acme/tiny", options());
    const ranges = hub.downloads("model.safetensors").filter((request) => request.server === "cdn");
    assert.deepEqual(
      ranges.map((request) => request.range),
      [undefined, "bytes=1000-", "bytes=3000-"],
    );
  });

  it("uses the part that an earlier run left", async () => {
    const content = Buffer.from(weights().content);
    const controller = new AbortController();
    hub.faults.set("model.safetensors", [{ kind: "cut", afterBytes: 3000, when: () => partHas(3000) }]);
    hub.beforeBody = async (path) => {
      if (
        path !== "model.safetensors" ||
        hub.downloads(path).filter(({ server }) => server === "cdn").length < 2
      )
        return;
      controller.abort();
      await new Promise(() => undefined);
    };
    await rejects(
      resolveModel("acme/tiny", options({ signal: controller.signal })),
      "request_cancelled",
      /cancelled/,
    );
    assert.deepEqual(readFileSync(partPath(weights())), content.subarray(0, 3000));
    hub.beforeBody = undefined;
    const before = hub.requests.length;
    const model = await resolveModel("acme/tiny", options());
    const resumed = hub.requests.slice(before).find((request) => request.range !== undefined);
    assert.equal(resumed?.range, "bytes=3000-");
    assert.deepEqual(readFileSync(join(model.path, "model.safetensors")), content);
  });

  it("starts over when the server does not honour Range", async () => {
    hub.faults.set("model.safetensors", [{ kind: "cut", afterBytes: 1000 }, { kind: "ignore-range" }]);
    const model = await resolveModel("acme/tiny", options());
    assert.deepEqual(readFileSync(join(model.path, "model.safetensors")), Buffer.from(weights().content));
  });

  it("throws away a part that is longer than the file, or damaged", async () => {
    for (const part of [Buffer.alloc(weights().content.byteLength + 10), Buffer.alloc(500, 7)]) {
      rmSync(join(cacheDir, "models--acme--tiny"), { recursive: true, force: true });
      await resolveModel("acme/tiny", options({ patterns: { allow: ["*.json", "*.safetensors"] } }));
      rmSync(join(cacheDir, "models--acme--tiny", "blobs", blobName(weights())));
      writeFileSync(partPath(weights()), part);
      const model = await resolveModel("acme/tiny", options());
      assert.deepEqual(readFileSync(join(model.path, "model.safetensors")), Buffer.from(weights().content));
    }
  });

  it("retries a busy hub and gives up on one that stays down", async () => {
    hub.faults.set("model.safetensors", [
      { kind: "status", status: 503 },
      { kind: "status", status: 429, headers: { "retry-after": "0" } },
    ]);
    await resolveModel("acme/tiny", options());
    hub.faults.set(
      "config.json",
      Array.from({ length: 20 }, () => ({ kind: "status" as const, status: 500 })),
    );
    const elsewhere = mkdtempSync(join(scratch, "cache-"));
    await rejects(
      resolveModel("acme/tiny", options({}, { HF_HUB_CACHE: elsewhere })),
      "hub_unreachable",
      /500/,
    );
  });
});

describe("integrity", () => {
  for (const name of ["model.safetensors", "config.json"]) {
    it(`fetches a corrupted ${name} once more, and refuses it the second time`, async () => {
      hub.faults.set(name, [{ kind: "corrupt" }]);
      const model = await resolveModel("acme/tiny", options());
      assert.deepEqual(readFileSync(join(model.path, name)), Buffer.from((files[name] as MockFile).content));
      const elsewhere = mkdtempSync(join(scratch, "cache-"));
      hub.faults.set(name, [{ kind: "corrupt" }, { kind: "corrupt" }]);
      await rejects(
        resolveModel("acme/tiny", options({}, { HF_HUB_CACHE: elsewhere })),
        "integrity_failed",
        /hash/,
      );
      const blobs = readdirSync(join(elsewhere, "models--acme--tiny", "blobs"));
      assert.ok(
        !blobs.some((blob) => blob.startsWith(blobName(files[name] as MockFile))),
        "nothing wrong is kept",
      );
    });
  }

  it("refuses a body that goes on after its end", async () => {
    hub.faults.set("model.safetensors", [{ kind: "append", extra: Buffer.alloc(100_000) }]);
    await rejects(resolveModel("acme/tiny", options()), "integrity_failed", /more than/);
  });

  it("refuses file names that lead out of the cache", async () => {
    const evil = "additional_chat_templates/..\\..\\evil.jinja";
    hub.repositories.set("acme/tiny", { commit, files: { ...files, [evil]: { content: Buffer.from("x") } } });
    await rejects(resolveModel("acme/tiny", options()), "artifact_invalid", /no path inside/);
  });
});

describe("refusals", () => {
  it("tells how to get at a gated repository", async () => {
    hub.repositories.set("acme/tiny", { commit, files, token: "hf_secret", gated: true });
    await rejects(resolveModel("acme/tiny", options()), "hub_denied", /gated.*HF_TOKEN/);
    const wrong = options({}, { HF_TOKEN: "hf_wrong" });
    await rejects(resolveModel("acme/tiny", wrong), "hub_denied", /has no access/);
  });

  it("names a missing repository, revision and file", async () => {
    await rejects(resolveModel("acme/none", options()), "artifact_not_found", /does not exist on the hub/);
    await rejects(resolveModel("acme/tiny@v9", options()), "artifact_not_found", /no such revision/);
    await rejects(resolveModel("acme/tiny/none.gguf", options()), "artifact_not_found", /no file none\.gguf/);
  });

  it("says that an endpoint cannot be reached", async () => {
    const dead = options({}, { HF_ENDPOINT: "http://127.0.0.1:1" });
    await rejects(resolveModel("acme/tiny", dead), "hub_unreachable", /ECONNREFUSED/);
  });

  it("contacts nothing for local paths and for text that is no id", async () => {
    const folder = mkdtempSync(join(scratch, "local-"));
    assert.deepEqual(await resolveModel(folder, options()), { path: folder, name: folder, hub: undefined });
    await rejects(resolveModel("./missing", options()), "artifact_not_found", /no such file or folder/);
    await rejects(
      resolveModel("just-a-word", options()),
      "artifact_not_found",
      /no existing path and no hub id/,
    );
    assert.equal(hub.requests.length, 0);
  });

  it("refuses a token that would break the header, without repeating it", async () => {
    await assert.rejects(
      resolveModel("acme/tiny", options({}, { HF_TOKEN: "hf_a\nb" })),
      (error: OctavoError) => {
        assert.equal(error.code, "invalid_option");
        assert.ok(!error.message.includes("hf_a"));
        return true;
      },
    );
  });
});

describe("the machine", () => {
  it("refuses before it starts what the disk cannot hold", async () => {
    files["model.safetensors"] = { ...weights(), announcedSize: 2 ** 49 };
    await rejects(resolveModel("acme/tiny", options()), "disk_full", /needs 562\.9 TB more .*HF_HOME/);
    assert.equal(hub.downloads("model.safetensors").length, 0);
  });

  it("says that the cache cannot be written", async () => {
    const file = join(scratch, "a-file");
    writeFileSync(file, "");
    await rejects(
      resolveModel("acme/tiny", options({}, { HF_HUB_CACHE: file })),
      "invalid_option",
      /cannot be written.*HF_HOME/,
    );
  });

  it("goes through a proxy, except for hosts that need none", async () => {
    const tunnels: string[] = [];
    const proxy = createServer().on("connect", (request, socket: Socket, head: Buffer) => {
      tunnels.push(request.url ?? "");
      const [host = "", port] = (request.url ?? "").split(":");
      const upstream = connect(Number(port), host, () => {
        socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
        upstream.write(head);
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [socket, upstream])
        end.on("error", () => [socket, upstream].forEach((other) => other.destroy()));
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      await resolveModel("acme/tiny", options({}, { HTTP_PROXY: url, NO_PROXY: new URL(hub.cdnUrl).host }));
      assert.deepEqual(new Set(tunnels), new Set([new URL(hub.url).host]));
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });
});

describe("redirects", () => {
  it("end somewhere", async () => {
    const location = `${hub.cdnUrl}/acme/tiny/resolve/cdn/model.safetensors`;
    const loop = { kind: "status" as const, status: 302, headers: { location } };
    hub.faults.set(
      "model.safetensors",
      Array.from({ length: 1000 }, () => loop),
    );
    await rejects(resolveModel("acme/tiny", options()), "hub_unreachable", /redirects more than 10 times/);
  });

  it("lead to no other protocol", async () => {
    for (const location of ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://["]) {
      const elsewhere = mkdtempSync(join(scratch, "cache-"));
      hub.faults.set(
        "model.safetensors",
        Array.from({ length: 20 }, () => ({ kind: "status" as const, status: 302, headers: { location } })),
      );
      await rejects(
        resolveModel("acme/tiny", options({}, { HF_HUB_CACHE: elsewhere })),
        "hub_unreachable",
        /not followed/,
      );
    }
  });
});

describe("offline", () => {
  const offline = { HF_HUB_OFFLINE: "1" };

  it("serves a full cache without a request", async () => {
    await resolveModel("acme/tiny", options());
    const before = hub.requests.length;
    const model = await resolveModel("acme/tiny", options({}, offline));
    assert.ok(existsSync(join(model.path, "model.safetensors")));
    assert.equal(hub.requests.length, before);
  });

  it("says what is missing", async () => {
    await rejects(
      resolveModel("acme/tiny", options({}, offline)),
      "artifact_not_found",
      /not in the cache.*HF_HUB_OFFLINE/,
    );
    const model = await resolveModel("acme/tiny", options());
    rmSync(join(model.path, "tokenizer.json"));
    await rejects(
      resolveModel("acme/tiny", options({}, offline)),
      "artifact_not_found",
      /lacks tokenizer\.json/,
    );
    rmSync(join(cacheDir, "models--acme--tiny", "blobs", blobName(weights())));
    await rejects(resolveModel("acme/tiny", options({}, offline)), "artifact_not_found", /incomplete/);
  });

  it("falls back to the cache, with a warning, when the hub is down", async () => {
    await resolveModel("acme/tiny", options());
    const warnings: string[] = [];
    const dead = { HF_ENDPOINT: "http://127.0.0.1:1" };
    const model = await resolveModel(
      "acme/tiny",
      options({ onWarning: (text) => warnings.push(text) }, dead),
    );
    assert.ok(existsSync(join(model.path, "config.json")));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /cached copy/);
  });
});

describe("GGUF repositories", () => {
  beforeEach(() => {
    const gguf = (seed: number): MockFile => {
      return { content: new Uint8Array(new Random(seed).floats(500, 1).buffer), isLarge: true };
    };
    hub.repositories.set("acme/tiny-GGUF", {
      commit,
      files: {
        "tiny-Q4_K_M.gguf": gguf(1),
        "tiny-Q4_K_S.gguf": gguf(2),
        "tiny-Q8_0.gguf": gguf(3),
        "mmproj-tiny-F16.gguf": gguf(4),
        "BF16/tiny-BF16-00001-of-00002.gguf": gguf(5),
        "BF16/tiny-BF16-00002-of-00002.gguf": gguf(6),
      },
    });
  });

  it("takes the file or quantisation asked for, or the usual one, and nothing else", async () => {
    const pick = async (id: string): Promise<string> => (await resolveModel(id, options())).path;
    assert.match(await pick("acme/tiny-GGUF:q8_0"), /tiny-Q8_0\.gguf$/);
    assert.match(await pick("acme/tiny-GGUF/tiny-Q4_K_S.gguf"), /tiny-Q4_K_S\.gguf$/);
    assert.match(await pick("acme/tiny-GGUF"), /tiny-Q4_K_M\.gguf$/);
    const path = await pick("acme/tiny-GGUF@main:BF16");
    assert.match(path, /BF16[/\\]tiny-BF16-00001-of-00002\.gguf$/);
    assert.ok(existsSync(path.replace("00001-of", "00002-of")));
    assert.equal(hub.downloads("mmproj-tiny-F16.gguf").length, 0);
  });

  it("lists the choices when the one asked for is not there", async () => {
    await rejects(
      resolveModel("acme/tiny-GGUF:Q2_K", options()),
      "artifact_not_found",
      /Q2_K.*tiny-Q8_0\.gguf/,
    );
    await rejects(
      resolveModel("acme/tiny-GGUF:Q4_K", options()),
      "artifact_not_found",
      /no GGUF file of Q4_K /,
    );
  });
});

describe("several at once", () => {
  it("downloads each file once for two callers in one process", async () => {
    const [first, second] = await Promise.all([
      resolveModel("acme/tiny", options()),
      resolveModel("acme/tiny", options()),
    ]);
    assert.equal(first.path, second.path);
    assert.equal(hub.downloads("model.safetensors").filter((request) => request.server === "cdn").length, 1);
  });

  it("downloads each file once for two processes", async () => {
    const worker = fileURLToPath(new URL("./resolve-model.worker.js", import.meta.url));
    const run = async (): Promise<number | null> => {
      const child = fork(worker, ["acme/tiny"], {
        env: { ...process.env, HF_ENDPOINT: hub.url, HF_HUB_CACHE: cacheDir },
      });
      return new Promise((resolve) => child.on("exit", resolve));
    };
    assert.deepEqual(await Promise.all([run(), run()]), [0, 0]);
    assert.equal(hub.downloads("model.safetensors").filter((request) => request.server === "cdn").length, 1);
    const blobs = readdirSync(join(cacheDir, "models--acme--tiny", "blobs"));
    assert.deepEqual(
      blobs.filter((blob) => blob.includes("incomplete")),
      [],
    );
  });
});
