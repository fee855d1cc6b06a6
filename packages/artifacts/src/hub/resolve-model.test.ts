import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { blobName, type MockFile } from "../testing/mock-hub.js";
import { TestRandom } from "@octavo/text/testing/random";
import { commit, rejects, TinyRepository } from "../testing/tiny-repository.js";
import { openCheckpoint } from "../checkpoint/open-checkpoint.js";
import type { DownloadProgress } from "./download-progress.js";
import { resolveModel } from "./resolve-model.js";

const tiny = new TinyRepository();

describe("downloading", () => {
  it("lays the cache out as huggingface_hub does and yields a checkpoint", async () => {
    const model = await resolveModel("acme/tiny", tiny.options());
    const root = join(tiny.cacheDir, "models--acme--tiny");
    assert.equal(model.path, join(root, "snapshots", commit));
    assert.deepEqual(model.hub, { repository: "acme/tiny", revision: "main", commit });
    assert.equal(readFileSync(join(root, "refs", "main"), "utf8"), commit);
    const link = join(model.path, "model.safetensors");
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.equal(readlinkSync(link), join("..", "..", "blobs", blobName(tiny.weights)));
    assert.deepEqual(readFileSync(link), Buffer.from(tiny.weights.content));
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
    tiny.serveShards(3);
    const model = await resolveModel("acme/tiny", tiny.options());
    const checkpoint = await openCheckpoint(model.path);
    assert.equal(new Set([...checkpoint.tensors.values()].map((tensor) => tensor.path)).size, 3);
  });

  it("names a shard that the repository lacks", async () => {
    tiny.serveShards(3);
    delete tiny.files["model-00002-of-00003.safetensors"];
    await rejects(
      resolveModel("acme/tiny", tiny.options()),
      "artifact_not_found",
      /model-00002-of-00003\.safetensors/,
    );
  });

  it("does not fetch again what is there", async () => {
    await resolveModel("acme/tiny", tiny.options());
    const before = tiny.hub.requests.length;
    await resolveModel("acme/tiny", tiny.options());
    const again = tiny.hub.requests.slice(before);
    assert.ok(again.every((request) => request.method === "HEAD" || request.path.startsWith("/api/")));
  });

  it("follows a revision, and asks nothing for a commit that is complete", async () => {
    tiny.hub.repositories.set("acme/tiny", { commit, files: tiny.files, refs: ["refs/pr/1"] });
    await resolveModel("acme/tiny@refs/pr/1", tiny.options());
    assert.equal(
      readFileSync(join(tiny.cacheDir, "models--acme--tiny", "refs", "refs", "pr", "1"), "utf8"),
      commit,
    );
    const before = tiny.hub.requests.length;
    await resolveModel(`acme/tiny@${commit}`, tiny.options());
    assert.equal(tiny.hub.requests.length, before);
  });

  it("sends the token to the hub and not to the CDN it redirects to", async () => {
    tiny.hub.repositories.set("acme/tiny", { commit, files: tiny.files, token: "hf_secret" });
    await resolveModel("acme/tiny", tiny.options({}, { HF_TOKEN: "hf_secret" }));
    const cdn = tiny.hub.requests.filter((request) => request.server === "cdn");
    assert.ok(cdn.length > 0);
    assert.ok(cdn.every((request) => request.authorization === undefined));
    const own = tiny.hub.requests.filter((request) => request.server === "hub");
    assert.ok(own.every((request) => request.authorization === "Bearer hf_secret"));
  });

  it("reads the token file of a logged-in user", async () => {
    tiny.hub.repositories.set("acme/tiny", { commit, files: tiny.files, token: "hf_filed" });
    const home = tiny.freshFolder("home-");
    writeFileSync(join(home, "token"), "hf_filed\n");
    const model = await resolveModel("acme/tiny", tiny.options({}, { HF_HOME: home }));
    assert.ok(existsSync(model.path));
  });

  it("reports progress up to the last byte", async () => {
    const seen: DownloadProgress[] = [];
    await resolveModel("acme/tiny", tiny.options({ onProgress: (progress) => seen.push(progress) }));
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
    const model = await resolveModel("acme/tiny", tiny.options({ patterns }));
    assert.ok(!existsSync(join(model.path, "generation_config.json")));
    assert.ok(existsSync(join(model.path, "config.json")));
  });
});

describe("GGUF repositories", () => {
  beforeEach(() => {
    const gguf = (seed: number): MockFile => {
      return { content: new Uint8Array(new TestRandom(seed).floats(500, 1).buffer), isLarge: true };
    };
    tiny.hub.repositories.set("acme/tiny-GGUF", {
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
    const pick = async (id: string): Promise<string> => (await resolveModel(id, tiny.options())).path;
    assert.match(await pick("acme/tiny-GGUF:q8_0"), /tiny-Q8_0\.gguf$/);
    assert.match(await pick("acme/tiny-GGUF/tiny-Q4_K_S.gguf"), /tiny-Q4_K_S\.gguf$/);
    assert.match(await pick("acme/tiny-GGUF"), /tiny-Q4_K_M\.gguf$/);
    const path = await pick("acme/tiny-GGUF@main:BF16");
    assert.match(path, /BF16[/\\]tiny-BF16-00001-of-00002\.gguf$/);
    assert.ok(existsSync(path.replace("00001-of", "00002-of")));
    assert.equal(tiny.hub.downloads("mmproj-tiny-F16.gguf").length, 0);
  });

  it("lists the choices when the one asked for is not there", async () => {
    await rejects(
      resolveModel("acme/tiny-GGUF:Q2_K", tiny.options()),
      "artifact_not_found",
      /Q2_K.*tiny-Q8_0\.gguf/,
    );
    await rejects(
      resolveModel("acme/tiny-GGUF:Q4_K", tiny.options()),
      "artifact_not_found",
      /no GGUF file of Q4_K /,
    );
  });
});

describe("several at once", () => {
  it("downloads each file once for two callers in one process", async () => {
    const [first, second] = await Promise.all([
      resolveModel("acme/tiny", tiny.options()),
      resolveModel("acme/tiny", tiny.options()),
    ]);
    assert.equal(first.path, second.path);
    assert.equal(
      tiny.hub.downloads("model.safetensors").filter((request) => request.server === "cdn").length,
      1,
    );
  });

  it("downloads each file once for two processes", async () => {
    const worker = fileURLToPath(new URL("./resolve-model.worker.js", import.meta.url));
    const run = async (): Promise<number | null> => {
      const child = fork(worker, ["acme/tiny"], {
        env: { ...process.env, HF_ENDPOINT: tiny.hub.url, HF_HUB_CACHE: tiny.cacheDir },
      });
      return new Promise((resolve) => child.on("exit", resolve));
    };
    assert.deepEqual(await Promise.all([run(), run()]), [0, 0]);
    assert.equal(
      tiny.hub.downloads("model.safetensors").filter((request) => request.server === "cdn").length,
      1,
    );
    const blobs = readdirSync(join(tiny.cacheDir, "models--acme--tiny", "blobs"));
    assert.deepEqual(
      blobs.filter((blob) => blob.includes("incomplete")),
      [],
    );
  });
});
