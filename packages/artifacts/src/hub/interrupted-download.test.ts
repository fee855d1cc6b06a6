import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { blobName, type MockFile } from "../testing/mock-hub.js";
import { commit, rejects, TinyRepository } from "../testing/tiny-repository.js";
import { resolveModel } from "./resolve-model.js";

const tiny = new TinyRepository();

describe("resuming", () => {
  it("goes on after cut connections with the bytes it has", async () => {
    tiny.hub.faults.set("model.safetensors", [
      { kind: "cut", afterBytes: 1000, when: () => tiny.partHas(1000) },
      { kind: "cut", afterBytes: 2000, when: () => tiny.partHas(3000) },
    ]);
    await resolveModel("acme/tiny", tiny.options());
    const ranges = tiny.hub.downloads("model.safetensors").filter((request) => request.server === "cdn");
    assert.deepEqual(
      ranges.map((request) => request.range),
      [undefined, "bytes=1000-", "bytes=3000-"],
    );
  });

  it("uses the part that an earlier run left", async () => {
    const content = Buffer.from(tiny.weights.content);
    const controller = new AbortController();
    tiny.hub.faults.set("model.safetensors", [
      { kind: "cut", afterBytes: 3000, when: () => tiny.partHas(3000) },
    ]);
    tiny.hub.beforeBody = async (path) => {
      if (
        path !== "model.safetensors" ||
        tiny.hub.downloads(path).filter(({ server }) => server === "cdn").length < 2
      )
        return;
      controller.abort();
      await new Promise(() => undefined);
    };
    await rejects(
      resolveModel("acme/tiny", tiny.options({ signal: controller.signal })),
      "request_cancelled",
      /cancelled/,
    );
    assert.deepEqual(readFileSync(tiny.partPath), content.subarray(0, 3000));
    tiny.hub.beforeBody = undefined;
    const before = tiny.hub.requests.length;
    const model = await resolveModel("acme/tiny", tiny.options());
    const resumed = tiny.hub.requests.slice(before).find((request) => request.range !== undefined);
    assert.equal(resumed?.range, "bytes=3000-");
    assert.deepEqual(readFileSync(join(model.path, "model.safetensors")), content);
  });

  it("starts over when the server does not honour Range", async () => {
    tiny.hub.faults.set("model.safetensors", [{ kind: "cut", afterBytes: 1000 }, { kind: "ignore-range" }]);
    const model = await resolveModel("acme/tiny", tiny.options());
    assert.deepEqual(readFileSync(join(model.path, "model.safetensors")), Buffer.from(tiny.weights.content));
  });

  it("throws away a part that is longer than the file, or damaged", async () => {
    for (const part of [Buffer.alloc(tiny.weights.content.byteLength + 10), Buffer.alloc(500, 7)]) {
      rmSync(join(tiny.cacheDir, "models--acme--tiny"), { recursive: true, force: true });
      await resolveModel("acme/tiny", tiny.options({ patterns: { allow: ["*.json", "*.safetensors"] } }));
      rmSync(join(tiny.cacheDir, "models--acme--tiny", "blobs", blobName(tiny.weights)));
      writeFileSync(tiny.partPath, part);
      const model = await resolveModel("acme/tiny", tiny.options());
      assert.deepEqual(
        readFileSync(join(model.path, "model.safetensors")),
        Buffer.from(tiny.weights.content),
      );
    }
  });

  it("retries a busy hub and gives up on one that stays down", async () => {
    tiny.hub.faults.set("model.safetensors", [
      { kind: "status", status: 503 },
      { kind: "status", status: 429, headers: { "retry-after": "0" } },
    ]);
    await resolveModel("acme/tiny", tiny.options());
    tiny.hub.faults.set(
      "config.json",
      Array.from({ length: 20 }, () => ({ kind: "status" as const, status: 500 })),
    );
    const elsewhere = tiny.freshFolder("cache-");
    await rejects(
      resolveModel("acme/tiny", tiny.options({}, { HF_HUB_CACHE: elsewhere })),
      "hub_unreachable",
      /500/,
    );
  });
});

describe("integrity", () => {
  for (const name of ["model.safetensors", "config.json"]) {
    it(`fetches a corrupted ${name} once more, and refuses it the second time`, async () => {
      tiny.hub.faults.set(name, [{ kind: "corrupt" }]);
      const model = await resolveModel("acme/tiny", tiny.options());
      assert.deepEqual(
        readFileSync(join(model.path, name)),
        Buffer.from((tiny.files[name] as MockFile).content),
      );
      const elsewhere = tiny.freshFolder("cache-");
      tiny.hub.faults.set(name, [{ kind: "corrupt" }, { kind: "corrupt" }]);
      await rejects(
        resolveModel("acme/tiny", tiny.options({}, { HF_HUB_CACHE: elsewhere })),
        "integrity_failed",
        /hash/,
      );
      const blobs = readdirSync(join(elsewhere, "models--acme--tiny", "blobs"));
      assert.ok(
        !blobs.some((blob) => blob.startsWith(blobName(tiny.files[name] as MockFile))),
        "nothing wrong is kept",
      );
    });
  }

  it("refuses a body that goes on after its end", async () => {
    tiny.hub.faults.set("model.safetensors", [{ kind: "append", extra: Buffer.alloc(100_000) }]);
    await rejects(resolveModel("acme/tiny", tiny.options()), "integrity_failed", /more than/);
  });

  it("refuses file names that lead out of the cache", async () => {
    const evil = "additional_chat_templates/..\\..\\evil.jinja";
    tiny.hub.repositories.set("acme/tiny", {
      commit,
      files: { ...tiny.files, [evil]: { content: Buffer.from("x") } },
    });
    await rejects(resolveModel("acme/tiny", tiny.options()), "artifact_invalid", /no path inside/);
  });
});

describe("redirects", () => {
  it("end somewhere", async () => {
    const location = `${tiny.hub.cdnUrl}/acme/tiny/resolve/cdn/model.safetensors`;
    const loop = { kind: "status" as const, status: 302, headers: { location } };
    tiny.hub.faults.set(
      "model.safetensors",
      Array.from({ length: 1000 }, () => loop),
    );
    await rejects(
      resolveModel("acme/tiny", tiny.options()),
      "hub_unreachable",
      /redirects more than 10 times/,
    );
  });

  it("lead to no other protocol", async () => {
    for (const location of ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://["]) {
      const elsewhere = tiny.freshFolder("cache-");
      tiny.hub.faults.set(
        "model.safetensors",
        Array.from({ length: 20 }, () => ({ kind: "status" as const, status: 302, headers: { location } })),
      );
      await rejects(
        resolveModel("acme/tiny", tiny.options({}, { HF_HUB_CACHE: elsewhere })),
        "hub_unreachable",
        /not followed/,
      );
    }
  });
});
