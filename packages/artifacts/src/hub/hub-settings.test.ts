import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { readHubSettings } from "./hub-settings.js";

const home = mkdtempSync(join(tmpdir(), "octavo-home-"));
after(() => rmSync(home, { recursive: true, force: true }));

describe("hub settings", () => {
  it("place the cache where huggingface_hub does", () => {
    const cacheDir = (env: Record<string, string>): string => readHubSettings(env).cacheDir;
    assert.equal(cacheDir({}), join(homedir(), ".cache", "huggingface", "hub"));
    assert.equal(cacheDir({ XDG_CACHE_HOME: "/x" }), "/x/huggingface/hub");
    assert.equal(cacheDir({ HF_HOME: "/h", XDG_CACHE_HOME: "/x" }), "/h/hub");
    assert.equal(cacheDir({ HUGGINGFACE_HUB_CACHE: "/old", HF_HOME: "/h" }), "/old");
    assert.equal(cacheDir({ HF_HUB_CACHE: "~/c", HUGGINGFACE_HUB_CACHE: "/old" }), join(homedir(), "c"));
    assert.equal(
      cacheDir({ HF_HUB_CACHE: "", HF_HOME: " " }),
      join(homedir(), ".cache", "huggingface", "hub"),
    );
  });

  it("find the token", () => {
    writeFileSync(join(home, "token"), "  hf_file \n");
    const token = (env: Record<string, string>): string | undefined =>
      readHubSettings({ HF_HOME: home, ...env }).token;
    assert.equal(token({}), "hf_file");
    assert.equal(token({ HF_TOKEN: "hf_env\n" }), "hf_env");
    assert.equal(token({ HUGGING_FACE_HUB_TOKEN: "hf_old" }), "hf_old");
    assert.equal(token({ HF_HUB_DISABLE_IMPLICIT_TOKEN: "1" }), undefined);
    assert.equal(token({ HF_TOKEN_PATH: join(home, "none") }), undefined);
  });

  it("know when to stay offline", () => {
    for (const value of ["1", "ON", "yes", "True"])
      assert.ok(readHubSettings({ HF_HUB_OFFLINE: value }).offline, value);
    for (const value of ["0", "", "no", "off"])
      assert.ok(!readHubSettings({ HF_HUB_OFFLINE: value }).offline, value);
    assert.ok(readHubSettings({ TRANSFORMERS_OFFLINE: "1" }).offline);
  });

  it("take another endpoint if it is one", () => {
    assert.equal(readHubSettings({}).endpoint, "https://huggingface.co");
    assert.equal(
      readHubSettings({ HF_ENDPOINT: "https://mirror.example/hf/" }).endpoint,
      "https://mirror.example/hf",
    );
    for (const endpoint of ["mirror.example", "ftp://mirror.example", "file:///etc"]) {
      assert.throws(
        () => readHubSettings({ HF_ENDPOINT: endpoint }),
        (error: unknown) => error instanceof OctavoError && error.code === "invalid_option",
      );
    }
  });
});
