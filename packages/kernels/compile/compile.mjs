// Compiles the native sources into one addon with plain compiler calls: no node-gyp, nothing downloaded. Incremental: an object is
// rebuilt when its command, its source or a header that it includes changed. Plain JavaScript, because a clone compiles kernels
// before TypeScript, and an installed package where no prebuilt one fits.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { arch, availableParallelism, platform } from "node:os";
import { dirname, join } from "node:path";
import { capture, digestOf } from "./processes.mjs";

/** The machine that this runs on. */
export const hostTarget = { platform: platform(), arch: arch() };

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

const avx512 = "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni";

/** Flags by file suffix, longest match first; a file for another processor or system is left out. */
const variants = [
  {
    suffix: ".avx512amx.cpp",
    arch: "x64",
    flags: `${avx512} -mamx-tile -mamx-int8 -mfma -mf16c -mavx2`.split(" "),
  },
  { suffix: ".avx512bf16.cpp", arch: "x64", flags: `${avx512} -mavx512bf16 -mfma -mf16c -mavx2`.split(" ") },
  { suffix: ".avx512.cpp", arch: "x64", flags: `${avx512} -mfma -mf16c -mavx2`.split(" ") },
  { suffix: ".avx2.cpp", arch: "x64", flags: ["-mavx2", "-mfma", "-mf16c"] },
  { suffix: ".neon.cpp", arch: "arm64", flags: ["-march=armv8.2-a+fp16+dotprod"] },
  { suffix: ".posix.cpp", isFor: (system) => system !== "win32", flags: [] },
  { suffix: ".windows.cpp", isFor: (system) => system === "win32", flags: [] },
];

/** How the addon's units are compiled. */
export const addonFlags = ["-O3", "-DNAPI_VERSION=9", "-DNAPI_CPP_EXCEPTIONS"];

/** The first compiler that answers, or undefined. */
export function probeCompiler() {
  for (const candidate of [process.env.CXX, "g++", "clang++", "c++"].filter(Boolean)) {
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
  return undefined;
}

/** Folders of Node's headers for addons, which come as packages. */
export function addonIncludes(from) {
  const require = createRequire(from);
  return [
    dirname(require.resolve("node-addon-api/package.json")),
    join(dirname(require.resolve("node-api-headers/package.json")), "include"),
  ];
}

/** Sources below `folder`, relative to `base`, with their flags; `extra` flags come last. */
export function unitsBelow(
  base,
  folder,
  { target = hostTarget, extra = addonFlags, keep = () => true } = {},
) {
  const sources = readdirSync(join(base, folder), { recursive: true })
    .map((path) => `${folder}/${String(path).replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(".cpp") && keep(path))
    .toSorted((one, other) => (one < other ? -1 : 1));
  return sources.flatMap((source) => {
    const variant = variants.find(({ suffix }) => source.endsWith(suffix));
    const fits =
      variant === undefined ||
      ((variant.arch ?? target.arch) === target.arch && (variant.isFor?.(target.platform) ?? true));
    return fits ? [{ source, flags: [...baseFlags, ...(variant?.flags ?? []), ...extra] }] : [];
  });
}

/**
 * Compiles the units into objects, one a core at a time; resolves to the objects, what they were made from, and how many were rebuilt.
 * Rejects with the compiler's words. A `compiler` may have `args` that come first, and `adapt`, which rewrites flags.
 */
export async function compileBelow(
  base,
  units,
  { compiler, objectFolder, includes = [], onProgress = () => {} },
) {
  mkdirSync(objectFolder, { recursive: true });
  const jobs = units.map(({ source, flags }) => {
    const object = join(objectFolder, `${source.replaceAll("/", "_")}.o`);
    const own = compiler.adapt?.(flags) ?? flags;
    const args = [...own, ...includes.map((folder) => `-I${folder}`), "-MMD", "-c", source, "-o", object];
    const digest = () =>
      digestOf(
        compiler.version,
        args.join(" "),
        ...prerequisites(base, object).map((path) => readFileSync(join(base, path), "utf8")),
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
      const { code, output } = await capture(compiler.command, [...(compiler.args ?? []), ...job.args], {
        cwd: base,
      });
      if (output.trim()) process.stderr.write(output);
      if (code !== 0) {
        next = stale.length;
        throw new Error(`compiling ${job.source} failed; the compiler's message is above`);
      }
      // What was written meanwhile may be newer than the object.
      const isCurrent = (path) => statSync(join(base, path)).mtimeMs < started;
      if (prerequisites(base, job.object).every(isCurrent))
        writeFileSync(`${job.object}.digest`, job.digest());
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

/** The source of an object and the headers beside it that it included when it was last compiled. */
function prerequisites(base, object) {
  const list = object.replace(/\.o$/, ".d");
  if (!existsSync(list)) return [];
  const paths = readFileSync(list, "utf8").replaceAll("\\\n", " ").split(/\s+/);
  return paths.filter((path) => /^(packages\/kernels\/)?native\//.test(path) && existsSync(join(base, path)));
}

/** Links the addon beside `path` and renames it, so that a process that has the old one mapped keeps it whole. */
export async function linkAddon(objects, path, { compiler, target = hostTarget, extra = [] }) {
  const undefinedSymbols = target.platform === "darwin" ? ["-undefined", "dynamic_lookup"] : [];
  const fresh = `${path}.${process.pid}.new`;
  const { code, output } = await capture(compiler.command, [
    ...(compiler.args ?? []),
    "-shared",
    "-pthread",
    ...undefinedSymbols,
    "-o",
    fresh,
    ...objects,
    ...extra,
  ]);
  if (code !== 0) throw new Error(`linking the kernels failed:\n${output}`);
  renameSync(fresh, path);
}
