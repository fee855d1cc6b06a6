import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { root } from "../lib/steps.mjs";
import { platforms } from "./platforms.mjs";
import { distTagOf, inOrder } from "./publish-order.mjs";
import { atVersion, follows, sectionOf } from "./release.mjs";
import { publishedFolders, readManifest, version, workspaceFolders } from "./workspaces.mjs";

test("all packages have one version, and need each other in exactly it", () => {
  const names = new Set(workspaceFolders.map((folder) => readManifest(folder).name));
  for (const folder of workspaceFolders) {
    const manifest = readManifest(folder);
    assert.deepEqual(atVersion(manifest, version, names), manifest, folder);
  }
});

test("what is published needs nothing that is not", () => {
  const published = new Set(publishedFolders.map((folder) => readManifest(folder).name));
  assert.ok(published.has("octavo") && published.size > 12);
  for (const folder of publishedFolders) {
    const { dependencies = {}, optionalDependencies = {}, scripts, files, name } = readManifest(folder);
    assert.equal(scripts, undefined, `${name} runs nothing at installation`);
    assert.ok(files.length > 0, name);
    for (const [needed, wanted] of Object.entries({ ...dependencies, ...optionalDependencies })) {
      if (/^(@octavo\/|octavo$)/.test(needed)) assert.ok(published.has(needed), `${name} needs ${needed}`);
      assert.match(wanted, /^\d/, `${name} needs one version of ${needed}`);
    }
  }
});

test("packages are published after what they need", () => {
  const all = publishedFolders.map((folder) => ({ manifest: readManifest(folder) }));
  const order = inOrder(all).map(({ manifest }) => manifest);
  assert.equal(order.length, all.length);
  assert.equal(order.at(-1).name, "octavo");
  for (const [index, { name, dependencies = {} }] of order.entries())
    for (const needed of Object.keys(dependencies))
      assert.ok(!order.slice(index).some((later) => later.name === needed), `${needed} before ${name}`);
});

test("versions rise", () => {
  for (const [next, before] of [
    ["0.2.0", "0.1.0"],
    ["0.1.1", "0.1.0"],
    ["1.0.0", "0.9.9"],
    ["0.10.0", "0.9.0"],
    ["1.0.0", "1.0.0-rc.1"],
    ["1.0.0-rc.2", "1.0.0-rc.1"],
    ["1.0.0-rc.10", "1.0.0-rc.9"],
    ["1.0.0-rc.1", "1.0.0-beta.2"],
  ]) {
    assert.ok(follows(next, before), `${next} after ${before}`);
    assert.ok(!follows(before, next), `${before} after ${next}`);
  }
  for (const bad of ["0.1.0", "1.0", "v1.0.0", "", "1.0.0 "]) assert.ok(!follows(bad, "0.1.0"), bad);
});

test("a version to try does not become what `npm i octavo` installs", () => {
  assert.equal(distTagOf("1.0.0"), "latest");
  assert.equal(distTagOf("1.0.0-rc.1"), "next");
});

test("the changelog's section is what a release says", () => {
  const text = "# Changelog\n\n## Unreleased\n\n- a\n\n## 0.1.0 (2026-01-01)\n\n- b\n";
  assert.equal(sectionOf(text, "Unreleased"), "- a\n");
  assert.equal(sectionOf(text, "0.1.0"), "- b\n");
  const later = text.replace("## 0.1.0 ", "## 0.1.0-rc.1 (2026-02-01)\n\n- c\n\n## 0.1.0 ");
  assert.equal(sectionOf(later, "0.1.0"), "- b\n");
  assert.throws(() => sectionOf(text, "9"), /says nothing/);
  assert.ok(sectionOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), "Unreleased").length > 100);
});

test("the loader looks for the packages of the table", async () => {
  const { prebuiltPackages } = await import("../../packages/kernels/dist/cpu/find-addon.js");
  for (const { name, os, cpu } of platforms)
    assert.ok(prebuiltPackages(os, cpu).includes(`@octavo/kernels-${name}`), name);
});
