// `node tools/release/pack.mjs [--platforms all|here] [--out FOLDER]`: packs what a release publishes. Packages come out as npm packs
// them, except that each gets the licence, the kernels name their prebuilt packages, and the model comes without its generator.
// `here` packs the addon built in this clone as this machine's prebuilt package; `all` needs build-prebuilt.mjs to have run.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { arch, platform } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { fail, root, say } from "../lib/steps.mjs";
import { packageNameOf, platforms, prebuiltPath } from "./platforms.mjs";
import { publishedFolders, readManifest, version } from "./workspaces.mjs";

const npm = (args, options) =>
  execFileSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 64 << 20,
    stdio: ["ignore", "pipe", "inherit"],
    shell: process.platform === "win32",
    ...options,
  });

/** npm 10 prints a list, npm 11 an object by name. */
const packed = (json) => Object.values(JSON.parse(json));

/** The platform's package of the addon built in this clone. */
function hostPlatform() {
  const libc = existsSync(`/lib/ld-musl-${arch() === "x64" ? "x86_64" : "aarch64"}.so.1`) ? "musl" : "glibc";
  return platforms.find(
    (row) => row.os === platform() && row.cpu === arch() && (row.libc === undefined || row.libc === libc),
  );
}

/** `wanted` is "all", "here", or "prebuilt": this machine's alone, of build-prebuilt.mjs. Resolves to the tarballs' paths by package name. */
export function packRelease(wanted, out) {
  const host = hostPlatform();
  const addons =
    wanted === "all"
      ? platforms.map((row) => ({ row, addon: prebuiltPath(row.name) }))
      : host === undefined
        ? []
        : [
            {
              row: host,
              addon:
                wanted === "here"
                  ? join(root, "packages/kernels/build/octavo_kernels.node")
                  : prebuiltPath(host.name),
            },
          ];
  const missing = addons.find(({ addon }) => !existsSync(addon));
  if (missing !== undefined) fail(`${missing.addon} is not built`);
  const stage = join(out, "stage");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });

  const listed = packed(
    npm(["pack", "--dry-run", "--json", ...publishedFolders.map((folder) => `./${folder}`)]),
  );
  const folders = publishedFolders.map((folder, index) => {
    const target = join(stage, folder.replaceAll("/", "-"));
    for (const { path } of listed[index].files)
      cpSync(join(root, folder, path), join(target, path), { recursive: true });
    writeManifest(target, changed(readManifest(folder), folder, addons));
    return target;
  });
  for (const { row, addon } of addons) {
    const target = join(stage, `kernels-${row.name}`);
    cpSync(addon, join(target, "octavo_kernels.node"), { recursive: true });
    writeManifest(target, platformManifest(row));
    folders.push(target);
  }
  for (const folder of folders) cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  cpSync(join(root, "README.md"), join(stage, "packages-cli", "README.md"));

  const tarballs = packed(npm(["pack", "--json", "--pack-destination", out, ...folders]));
  rmSync(stage, { recursive: true });
  return Object.fromEntries(
    tarballs.map(({ name, filename, size }) => [name, { path: join(out, filename), size }]),
  );
}

function changed(manifest, folder, addons) {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  // Provenance is only accepted for packages that name the repository they are built in.
  const source = repository && {
    repository: { type: "git", url: `git+${server}/${repository}.git`, directory: folder },
  };
  if (manifest.name === "@octavo/kernels")
    return {
      ...manifest,
      ...source,
      optionalDependencies: Object.fromEntries(addons.map(({ row }) => [packageNameOf(row), version])),
    };
  if (manifest.name !== "@octavo/octavo-mini") return { ...manifest, ...source };
  const { exports: _, devDependencies: __, type: ___, ...model } = manifest;
  return { ...model, ...source };
}

function platformManifest({ name, os, cpu, libc }) {
  return {
    name: packageNameOf({ name }),
    version,
    description: `Octavo's kernels, compiled for ${name}`,
    license: "Apache-2.0",
    files: ["octavo_kernels.node"],
    os: [os],
    cpu: [cpu],
    ...(libc && { libc: [libc] }),
    engines: { node: ">=20.19" },
  };
}

function writeManifest(folder, manifest) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      platforms: { type: "string", default: "here" },
      out: { type: "string", default: ".octavo/tarballs" },
    },
  });
  if (values.platforms !== "all" && values.platforms !== "here") fail("--platforms is `all` or `here`");
  const tarballs = packRelease(values.platforms, resolve(root, values.out));
  for (const [name, { path, size }] of Object.entries(tarballs))
    say(`${name}: ${(size / 2 ** 20).toFixed(2)} MiB, ${path}`);
}
