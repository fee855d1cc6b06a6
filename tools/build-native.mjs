// Compiles packages/kernels/native of this repository into build/octavo_kernels.node, what changed of it.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  addonFlags,
  addonIncludes,
  compileBelow,
  hostTarget,
  linkAddon,
  probeCompiler,
  unitsBelow,
} from "../packages/kernels/compile/compile.mjs";
import { digestOf, fail, root, say } from "./lib/steps.mjs";

export const nativeFolder = "packages/kernels/native";
/** Not part of the addon. */
const programs = [`${nativeFolder}/tests/`, `${nativeFolder}/bench/`];
const outputFolder = join(root, "packages/kernels/build");

export function findCompiler() {
  return (
    probeCompiler() ??
    fail(
      "no C++ compiler found. Install one (Debian/Ubuntu: `apt-get install g++`) and run the command again.",
    )
  );
}

/** Sources of the addon. */
export const isAddon = (path) => !programs.some((folder) => path.startsWith(folder));

/** Sources of the addon that know nothing of Node. */
export const isCore = (path) => isAddon(path) && !path.startsWith(`${nativeFolder}/binding/`);

/** Sources and flags for a build on this system; `extra` flags come last (sanitizers). */
export function nativeUnits(targetArch = hostTarget.arch, extra = ["-O3"], keep = () => true) {
  return unitsBelow(root, nativeFolder, { target: { ...hostTarget, arch: targetArch }, extra, keep });
}

/** `compileBelow` in the repository; a failure ends the process. */
export function compileUnits(units, options) {
  return compileBelow(root, units, options).catch((error) => fail(error.message));
}

/** How the addon's units are compiled; the measuring programs link the same objects. */
export const addonBuild = {
  flags: addonFlags,
  objectFolder: join(outputFolder, "objects"),
  includes: () => addonIncludes(join(root, "package.json")),
};

export async function buildNative({ quiet = false } = {}) {
  const compiler = findCompiler();
  const units = nativeUnits(hostTarget.arch, addonBuild.flags, isAddon);
  const { objects, digest, rebuilt } = await compileUnits(units, {
    compiler,
    objectFolder: addonBuild.objectFolder,
    includes: addonBuild.includes(),
    onProgress: progressBar(`compiling kernels with ${compiler.version}`),
  });
  const addon = join(outputFolder, "octavo_kernels.node");
  const linkDigest = digestOf(compiler.version, digest, ...objects);
  const linkStamp = `${addon}.digest`;
  const linked = existsSync(addon) && existsSync(linkStamp) && readFileSync(linkStamp, "utf8") === linkDigest;
  if (rebuilt === 0 && linked) {
    if (!quiet) say("kernels are up to date");
    return false;
  }
  await linkAddon(objects, addon, { compiler }).catch((error) => fail(error.message));
  writeFileSync(linkStamp, linkDigest);
  return true;
}

export function progressBar(title) {
  return (done, total, what) => {
    const name = what.split("/").slice(-2).join("/");
    if (!process.stderr.isTTY) return process.stderr.write(`octavo: ${title}: ${done}/${total} ${name}\n`);
    const width = 24;
    const filled = Math.round((done / total) * width);
    process.stderr.write(
      `\r\x1b[2K${title} [${"=".repeat(filled)}${" ".repeat(width - filled)}] ${done}/${total} ${name}`,
    );
    if (done === total) process.stderr.write("\n");
    return true;
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildNative();
