import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { TinyRepository } from "../testing/tiny-repository.js";
import { listCachedModels, removeCachedModel } from "./cached-models.js";
import { resolveModel } from "./resolve-model.js";

const tiny = new TinyRepository();
const env = (): Record<string, string> => ({ HF_HUB_CACHE: tiny.cacheDir });

describe("the cache of models", () => {
  it("lists what was downloaded, and removes it with its locks", async () => {
    const { path } = await resolveModel("acme/tiny", tiny.options());
    const [model, ...others] = listCachedModels(env());
    assert.deepEqual(others, []);
    assert.equal(model?.repository, "acme/tiny");
    assert.equal(model.snapshot, path);
    const stored = Object.values(tiny.files).reduce((sum, { content }) => sum + content.length, 0);
    assert.ok(model.bytes > tiny.weights.content.length && model.bytes <= stored);
    assert.ok(model.hasSafetensors);
    assert.equal(removeCachedModel("acme/tiny@main", env()).bytes, model.bytes);
    assert.equal(existsSync(model.folder), false);
    assert.deepEqual(listCachedModels(env()), []);
  });

  it("counts interrupted downloads, and takes other folders for what they are", () => {
    const blobs = join(tiny.cacheDir, "models--acme--half", "blobs");
    mkdirSync(blobs, { recursive: true });
    mkdirSync(join(tiny.cacheDir, "datasets--acme--data"));
    writeFileSync(join(blobs, "etag.incomplete"), "1234567");
    const [model] = listCachedModels(env());
    assert.deepEqual(
      [model?.repository, model?.bytes, model?.incompleteBytes, model?.snapshot],
      ["acme/half", 7, 7, undefined],
    );
  });

  it("removes nothing but models of the cache", () => {
    assert.deepEqual(listCachedModels({ HF_HUB_CACHE: join(tiny.cacheDir, "none") }), []);
    for (const id of ["acme/none", "../../etc", "acme/..", "/etc/passwd", ""])
      assert.throws(() => removeCachedModel(id, env()), { code: "artifact_not_found" }, id);
  });
});
