// `node tools/release/publish.mjs FOLDER [--dry-run]`: publishes a release's tarballs, each after those that it needs, so that nobody
// meets a half-published version; what is there already is left out, so that it can be run again.
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readTarballManifest } from "../lib/local-registry.mjs";
import { capture, fail, must, say } from "../lib/steps.mjs";
import { distTagOf, inOrder } from "./publish-order.mjs";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { "dry-run": { type: "boolean" } },
});
const [from] = positionals;
if (from === undefined) fail("usage: node tools/release/publish.mjs FOLDER [--dry-run]");
const packages = readdirSync(from)
  .filter((file) => file.endsWith(".tgz"))
  .map((file) => join(resolve(from), file))
  .map((path) => ({ path, manifest: readTarballManifest(path) }));

for (const { path, manifest } of inOrder(packages)) {
  const name = `${manifest.name}@${manifest.version}`;
  if (values["dry-run"]) {
    say(`${name}, ${distTagOf(manifest.version)}`);
    continue;
  }
  const known = await capture("npm", ["view", name, "version", "--loglevel=silent"]);
  if (known.code === 0 && known.output.trim() !== "") {
    say(`${name} is published already`);
    continue;
  }
  await must(`publishing ${name}`, "npm", [
    "publish",
    path,
    "--provenance",
    "--access",
    "public",
    "--tag",
    distTagOf(manifest.version),
  ]);
}
