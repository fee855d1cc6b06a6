// `node tools/release/build-prebuilt.mjs [NAME ...]`: compiles the kernels for the platforms of the table into .octavo/prebuilt/NAME.
// Needs Zig: the command `zig`, or ZIG, such as "python3 -m ziglang" with PyPI's package.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createRequire } from "node:module";
import {
  addonFlags,
  addonIncludes,
  compileBelow,
  linkAddon,
  unitsBelow,
} from "../../packages/kernels/compile/compile.mjs";
import { isAddon, nativeFolder, progressBar } from "../build-native.mjs";
import { fail, root, say } from "../lib/steps.mjs";
import { platforms, prebuiltPath } from "./platforms.mjs";

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !platforms.some((platform) => platform.name === name));
if (unknown !== undefined)
  fail(`no platform ${unknown}; there are: ${platforms.map(({ name }) => name).join(", ")}`);

const [command, ...prefix] = (process.env.ZIG ?? "zig").split(" ");

function zig(...args) {
  return execFileSync(command, [...prefix, ...args], { encoding: "utf8" }).trim();
}

/** Zig names processors in its own way, and knows no `-fPIC` where all code is. */
function adapterFor({ os }) {
  return (flags) =>
    flags
      .filter((flag) => !(os === "win32" && flag === "-fPIC"))
      .map((flag) => (flag.startsWith("-march=armv8.2-a") ? "-mcpu=generic+v8_2a+fullfp16+dotprod" : flag));
}

/** The functions that node.exe exports to addons, as a library to link with. */
function nodeLibrary(folder) {
  const headers = dirname(createRequire(join(root, "package.json")).resolve("node-api-headers/package.json"));
  const library = join(folder, "node_api.lib");
  zig(
    "dlltool",
    "-m",
    "i386:x86-64",
    "-D",
    "node.exe",
    "-d",
    join(headers, "def", "node_api.def"),
    "-l",
    library,
  );
  return library;
}

async function buildPrebuilt(platform) {
  const target = { platform: platform.os, arch: platform.cpu };
  const addon = prebuiltPath(platform.name);
  const folder = dirname(addon);
  mkdirSync(folder, { recursive: true });
  const compiler = {
    command,
    args: [...prefix, "c++", "-target", platform.zig],
    version: `zig ${zig("version")} ${platform.zig}`,
    adapt: adapterFor(platform),
  };
  const windows = platform.os === "win32";
  const extra = windows ? [...addonFlags, "-DNOMINMAX", "-DWIN32_LEAN_AND_MEAN"] : addonFlags;
  const { objects } = await compileBelow(
    root,
    unitsBelow(root, nativeFolder, { target, extra, keep: isAddon }),
    {
      compiler,
      objectFolder: join(folder, "objects"),
      includes: addonIncludes(join(root, "package.json")),
      onProgress: progressBar(`kernels for ${platform.name}`),
    },
  );
  await linkAddon(objects, addon, {
    compiler,
    target,
    extra: [...(windows ? [nodeLibrary(folder)] : []), "-s"],
  });
  return addon;
}

for (const platform of platforms) {
  if (wanted.length > 0 && !wanted.includes(platform.name)) continue;
  try {
    const addon = await buildPrebuilt(platform);
    say(`${addon}: ${(readFileSync(addon).length / 2 ** 20).toFixed(1)} MiB`);
  } catch (error) {
    fail(`${platform.name}: ${error.message}`);
  }
}
