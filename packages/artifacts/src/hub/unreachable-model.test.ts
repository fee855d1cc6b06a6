import assert from "node:assert/strict";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { blobName } from "../testing/mock-hub.js";
import { commit, rejects, TinyRepository } from "../testing/tiny-repository.js";
import { resolveModel } from "./resolve-model.js";

const tiny = new TinyRepository();

describe("refusals", () => {
  it("tells how to get at a gated repository", async () => {
    tiny.hub.repositories.set("acme/tiny", { commit, files: tiny.files, token: "hf_secret", gated: true });
    await rejects(resolveModel("acme/tiny", tiny.options()), "hub_denied", /gated.*HF_TOKEN/);
    const wrong = tiny.options({}, { HF_TOKEN: "hf_wrong" });
    await rejects(resolveModel("acme/tiny", wrong), "hub_denied", /has no access/);
  });

  it("names a missing repository, revision and file", async () => {
    await rejects(
      resolveModel("acme/none", tiny.options()),
      "artifact_not_found",
      /does not exist on the hub/,
    );
    await rejects(resolveModel("acme/tiny@v9", tiny.options()), "artifact_not_found", /no such revision/);
    await rejects(
      resolveModel("acme/tiny/none.gguf", tiny.options()),
      "artifact_not_found",
      /no file none\.gguf/,
    );
  });

  it("says that an endpoint cannot be reached", async () => {
    const dead = tiny.options({}, { HF_ENDPOINT: "http://127.0.0.1:1" });
    await rejects(resolveModel("acme/tiny", dead), "hub_unreachable", /ECONNREFUSED/);
  });

  it("contacts nothing for local paths and for text that is no id", async () => {
    const folder = tiny.freshFolder("local-");
    assert.deepEqual(await resolveModel(folder, tiny.options()), {
      path: folder,
      name: folder,
      hub: undefined,
    });
    await rejects(resolveModel("./missing", tiny.options()), "artifact_not_found", /no such file or folder/);
    await rejects(
      resolveModel("just-a-word", tiny.options()),
      "artifact_not_found",
      /no existing path and no hub id/,
    );
    assert.equal(tiny.hub.requests.length, 0);
  });

  it("refuses a token that would break the header, without repeating it", async () => {
    await assert.rejects(
      resolveModel("acme/tiny", tiny.options({}, { HF_TOKEN: "hf_a\nb" })),
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
    tiny.files["model.safetensors"] = { ...tiny.weights, announcedSize: 2 ** 49 };
    await rejects(resolveModel("acme/tiny", tiny.options()), "disk_full", /needs 562\.9 TB more .*HF_HOME/);
    assert.equal(tiny.hub.downloads("model.safetensors").length, 0);
  });

  it("says that the cache cannot be written", async () => {
    const file = join(tiny.scratch, "a-file");
    writeFileSync(file, "");
    await rejects(
      resolveModel("acme/tiny", tiny.options({}, { HF_HUB_CACHE: file })),
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
      await resolveModel(
        "acme/tiny",
        tiny.options({}, { HTTP_PROXY: url, NO_PROXY: new URL(tiny.hub.cdnUrl).host }),
      );
      assert.deepEqual(new Set(tunnels), new Set([new URL(tiny.hub.url).host]));
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });
});

describe("offline", () => {
  const offline = { HF_HUB_OFFLINE: "1" };

  it("serves a full cache without a request", async () => {
    await resolveModel("acme/tiny", tiny.options());
    const before = tiny.hub.requests.length;
    const model = await resolveModel("acme/tiny", tiny.options({}, offline));
    assert.ok(existsSync(join(model.path, "model.safetensors")));
    assert.equal(tiny.hub.requests.length, before);
  });

  it("says what is missing", async () => {
    await rejects(
      resolveModel("acme/tiny", tiny.options({}, offline)),
      "artifact_not_found",
      /not in the cache.*HF_HUB_OFFLINE/,
    );
    const model = await resolveModel("acme/tiny", tiny.options());
    rmSync(join(model.path, "tokenizer.json"));
    await rejects(
      resolveModel("acme/tiny", tiny.options({}, offline)),
      "artifact_not_found",
      /lacks tokenizer\.json/,
    );
    rmSync(join(tiny.cacheDir, "models--acme--tiny", "blobs", blobName(tiny.weights)));
    await rejects(resolveModel("acme/tiny", tiny.options({}, offline)), "artifact_not_found", /incomplete/);
  });

  it("falls back to the cache, with a warning, when the hub is down", async () => {
    await resolveModel("acme/tiny", tiny.options());
    const warnings: string[] = [];
    const dead = { HF_ENDPOINT: "http://127.0.0.1:1" };
    const model = await resolveModel(
      "acme/tiny",
      tiny.options({ onWarning: (text) => warnings.push(text) }, dead),
    );
    assert.ok(existsSync(join(model.path, "config.json")));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? "", /cached copy/);
  });
});
