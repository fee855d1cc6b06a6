// Compiles packages/kernels/native into one addon with plain compiler calls: no node-gyp, nothing downloaded.
// Incremental: an object is rebuilt when its command, its source or a header that it includes changed.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, arch } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { capture, digestOf, fail, filesBelow, root, say } from "./lib/steps.mjs";

export const nativeFolder = "packages/kernels/native";
/** Not part of the addon. */
const programs = [`${nativeFolder}/tests/`, `${nativeFolder}/bench/`];
const outputFolder = join(root, "packages/kernels/build");

const baseFlags = [
  "-std=c++17",
  "-fPIC",
  "-fno-math-errno",
  "-ffp-contract=off",
  "-fvisibility=hidden",
  "-pthread",
  "-Wall",
  "-Wextra",
];

/** Flags by file suffix, longest match first; a file whose instruction set the machine's family lacks is left out. */
const instructionSets = [
  {
    suffix: ".avx512bf16.cpp",
    arch: "x64",
    flags: "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx512bf16 -mfma -mf16c -mavx2".split(
      " ",
    ),
  },
  {
    suffix: ".avx512.cpp",
    arch: "x64",
    flags: "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c -mavx2".split(" "),
  },
  { suffix: ".avx2.cpp", arch: "x64", flags: ["-mavx2", "-mfma", "-mf16c"] },
  { suffix: ".neon.cpp", arch: "arm64", flags: ["-march=armv8.2-a+fp16+dotprod"] },
];

export function findCompiler() {
  const candidates = [process.env.CXX, "g++", "clang++", "c++"].filter(Boolean);
  for (const candidate of candidates) {
    try {
      const version = execFileSync(candidate, ["--version"], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
      return { command: candidate, version: version.split("\n")[0] };
    } catch {
      // not this one
    }
  }
  return fail(
    "no C++ compiler found. Install one (Debian/Ubuntu: `apt-get install g++`) and run the command again.",
  );
}

/** Sources of the addon. */
const isAddon = (path) => !programs.some((folder) => path.startsWith(folder));

/** Sources of the addon that know nothing of Node. */
export const isCore = (path) => isAddon(path) && !path.startsWith(`${nativeFolder}/binding/`);

/** Sources and flags for a build; `extra` flags come last (sanitizers). */
export function nativeUnits(targetArch = arch(), extra = ["-O3"], keep = () => true) {
  const sources = filesBelow(nativeFolder, (path) => path.endsWith(".cpp")).filter(keep);
  return sources.flatMap((source) => {
    const set = instructionSets.find((candidate) => source.endsWith(candidate.suffix));
    if (set && set.arch !== targetArch) return [];
    return [{ source, flags: [...baseFlags, ...(set?.flags ?? []), ...extra] }];
  });
}

/** Compiles the units into objects, two or more at a time; returns the objects, what they were made from, and how many were rebuilt. */
export async function compileUnits(units, { compiler, objectFolder, includes = [], onProgress = () => {} }) {
  mkdirSync(objectFolder, { recursive: true });
  const jobs = units.map(({ source, flags }) => {
    const object = join(objectFolder, `${source.replaceAll("/", "_")}.o`);
    const args = [...flags, ...includes.map((folder) => `-I${folder}`), "-MMD", "-c", source, "-o", object];
    const digest = () =>
      digestOf(
        compiler.version,
        args.join(" "),
        ...prerequisites(object).map((path) => readFileSync(join(root, path), "utf8")),
      );
    const isBuilt = existsSync(object) && existsSync(`${object}.digest`);
    const fresh = isBuilt && readFileSync(`${object}.digest`, "utf8") === digest();
    return { source, args, object, digest, fresh };
  });
  const stale = jobs.filter((job) => !job.fresh);
  let next = 0;
  let done = 0;
  const worker = async () => {
    while (next < stale.length) {
      const job = stale[next++];
      const started = Date.now();
      const { code, output } = await capture(compiler.command, job.args);
      if (output.trim()) process.stderr.write(output);
      if (code !== 0) fail(`compiling ${job.source} failed; the compiler's message is above.`);
      // What was written meanwhile may be newer than the object.
      const isCurrent = (path) => statSync(join(root, path)).mtimeMs < started;
      if (prerequisites(job.object).every(isCurrent)) writeFileSync(`${job.object}.digest`, job.digest());
      onProgress(++done, stale.length, job.source);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, availableParallelism()) }, worker));
  return {
    objects: jobs.map((job) => job.object),
    digest: digestOf(...jobs.map((job) => job.digest())),
    rebuilt: stale.length,
  };
}

/** The source of an object and the project's headers that it included when it was last compiled. */
function prerequisites(object) {
  const list = object.replace(/\.o$/, ".d");
  if (!existsSync(list)) return [];
  const paths = readFileSync(list, "utf8").replaceAll("\\\n", " ").split(/\s+/);
  return paths.filter((path) => path.startsWith(nativeFolder) && existsSync(join(root, path)));
}

/** How the addon's units are compiled; the measuring programs link the same objects. */
export const addonBuild = {
  flags: ["-O3", "-DNAPI_VERSION=9", "-DNAPI_CPP_EXCEPTIONS"],
  objectFolder: join(outputFolder, "objects"),
  includes() {
    const require = createRequire(join(root, "package.json"));
    return [
      dirname(require.resolve("node-addon-api/package.json")),
      join(dirname(require.resolve("node-api-headers/package.json")), "include"),
    ];
  },
};

export async function buildNative({ quiet = false } = {}) {
  const compiler = findCompiler();
  const units = nativeUnits(arch(), addonBuild.flags, isAddon);
  const bar = progressBar(`compiling kernels with ${compiler.version}`);
  const { objects, digest, rebuilt } = await compileUnits(units, {
    compiler,
    objectFolder: addonBuild.objectFolder,
    includes: addonBuild.includes(),
    onProgress: bar,
  });
  const addon = join(outputFolder, "octavo_kernels.node");
  const linkDigest = digestOf(compiler.version, digest, ...objects);
  const linkStamp = `${addon}.digest`;
  const linked = existsSync(addon) && existsSync(linkStamp) && readFileSync(linkStamp, "utf8") === linkDigest;
  if (rebuilt === 0 && linked) {
    if (!quiet) say("kernels are up to date");
    return false;
  }
  const undefinedSymbols = process.platform === "darwin" ? ["-undefined", "dynamic_lookup"] : [];
  // Linked beside and renamed, so that a process that has the old addon mapped keeps it whole.
  const fresh = `${addon}.${process.pid}.new`;
  const { code, output } = await capture(compiler.command, [
    "-shared",
    "-pthread",
    ...undefinedSymbols,
    "-o",
    fresh,
    ...objects,
  ]);
  if (code !== 0) fail(`linking the kernels failed:\n${output}`);
  renameSync(fresh, addon);
  writeFileSync(linkStamp, linkDigest);
  return true;
}

function progressBar(title) {
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
