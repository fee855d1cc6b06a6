// `node tools/release/try-tarballs.mjs FOLDER [--sbom FILE]`: installs a release's tarballs in an empty folder, with the kernels that npm
// picks for this machine, and asks the embedded model; with --sbom writes what was installed, as CycloneDX.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readTarballManifest, serveTarballs } from "../lib/local-registry.mjs";
import { capture, fail, say } from "../lib/steps.mjs";

const { positionals, values } = parseArgs({ allowPositionals: true, options: { sbom: { type: "string" } } });
const [from] = positionals;
if (from === undefined) fail("usage: node tools/release/try-tarballs.mjs FOLDER [--sbom FILE]");
const tarballs = Object.fromEntries(
  readdirSync(from)
    .filter((file) => file.endsWith(".tgz"))
    .map((file) => join(resolve(from), file))
    .map((path) => [readTarballManifest(path).name, path]),
);
assert.ok(tarballs.octavo, `${from} holds no tarball of octavo`);

const scratch = mkdtempSync(join(tmpdir(), "octavo-tarballs-"));
// npm's SBOM is named after the folder
const folder = join(scratch, "octavo-installed");
mkdirSync(folder);
const registry = await serveTarballs(tarballs);
try {
  writeFileSync(
    join(folder, "package.json"),
    '{"name": "octavo-installed", "version": "1.0.0", "private": true}\n',
  );
  writeFileSync(join(folder, ".npmrc"), `@octavo:registry=${registry.url}\n`);
  const shell = process.platform === "win32";
  const args = ["install", "--no-audit", "--no-fund", "--loglevel=error", tarballs.octavo];
  const installed = await capture("npm", args, { cwd: folder, shell });
  assert.equal(installed.code, 0, installed.output);
  const bin = join(folder, "node_modules", "octavo", "bin", "octavo.js");
  const octavo = (...words) =>
    execFileSync(process.execPath, [bin, ...words], { cwd: folder, encoding: "utf8", input: "" });
  const kernels = JSON.parse(octavo("doctor", "--json")).find(({ name }) => name === "kernels");
  assert.notEqual(kernels.state, "failure", kernels.found);
  const said = octavo("run", "octavo-mini", "Hello! Who are you?", "--temperature", "0");
  assert.match(said, /\w/);
  say(`${process.platform}-${process.arch}, ${kernels.found}: ${said.trim()}`);
  if (values.sbom !== undefined) {
    const sbom = await capture("npm", ["sbom", "--sbom-format=cyclonedx", "--loglevel=error"], {
      cwd: folder,
      shell,
    });
    assert.equal(sbom.code, 0, sbom.output);
    writeFileSync(values.sbom, sbom.output.slice(sbom.output.indexOf("{")));
  }
} finally {
  registry.close();
  rmSync(scratch, { recursive: true, force: true });
}
