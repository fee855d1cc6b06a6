// Brings a clone to a runnable state: packages, kernels, compiled TypeScript. Each step is skipped when nothing it reads changed.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { digestOf, fail, filesBelow, must, root, say, stamp } from "./lib/steps.mjs";

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19))
  fail(`Node 20.19 or newer is needed; this is ${process.versions.node}.`);

export async function setup() {
  await installPackages();
  const { buildNative } = await import("./build-native.mjs");
  await buildNative({ quiet: true });
  await compileTypeScript();
}

async function installPackages() {
  if (packagesInstalled()) return;
  say("installing packages ...");
  // Not `npm ci`: it refuses a lock file that lacks the packages of platforms its registry did not offer.
  await must(
    "npm install",
    "npm",
    ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    {
      shell: process.platform === "win32",
    },
  );
}

/** Compares the lock file with the one npm leaves inside node_modules; packages of other platforms are absent there. */
function packagesInstalled() {
  const installedPath = join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installedPath)) return false;
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(installedPath, "utf8")).packages;
  return Object.entries(wanted).every(([path, { version, optional, link }]) => {
    if (!path.startsWith("node_modules/")) return true;
    const present = installed[path];
    return present ? link || present.version === version : optional === true;
  });
}

async function compileTypeScript() {
  const sources = [
    ...["packages", "models", "bench", "examples"].flatMap((folder) =>
      filesBelow(folder, (path) => path.endsWith(".ts") || path.endsWith("tsconfig.json")),
    ),
    "tsconfig.json",
    "tsconfig.base.json",
  ];
  const digest = digestOf(...sources, ...sources.map((path) => readFileSync(join(root, path), "utf8")));
  const done = stamp("typescript");
  const outputs = existsSync(join(root, "packages/cli/dist/main.js"));
  if (outputs && done.matches(digest)) return;
  say("compiling TypeScript ...");
  await must("tsc", process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-b"]);
  done.write(digest);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await setup();
  say("ready: `npm start` serves the embedded model, `npm test` runs every test");
}
