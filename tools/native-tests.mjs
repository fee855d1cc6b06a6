// Builds the native core with its standalone tests and runs them: plain; under sanitizers with --sanitize; the NEON build
// under qemu-user with --neon, where a cross compiler and qemu-aarch64 are installed (it says so and skips where not).
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, availableParallelism } from "node:os";
import { basename, join } from "node:path";
import {
  addonBuild,
  buildNative,
  compileUnits,
  findCompiler,
  isCore,
  nativeFolder,
  nativeUnits,
} from "./build-native.mjs";
import { capture, filesBelow, must, root, say } from "./lib/steps.mjs";

await buildNative({ quiet: true });

const tests = `${nativeFolder}/tests`;
/** Paths of kernels that this processor runs, best last. */
const pathsHere = (() => {
  const addon = createRequire(import.meta.url)(join(root, "packages/kernels/build/octavo_kernels.node"));
  const { KernelKind: kinds, KernelPath: paths } = addon.enumerations;
  return paths.filter((_, path) => kinds.some((_kind, kind) => addon.setKernelPath(kind, path)));
})();
/** Fewer cases, on the machine's best instruction set alone. */
const bestTarget = { OCTAVO_TEST_QUICK: "1", OCTAVO_TEST_TARGETS: "best" };
const plain = { flags: ["-O2", "-g"], env: {}, isWatched: () => false };
// lines for reports, and nothing of variables, which takes the compiler longest
const sanitized = ["-O1", "-g1"];
/**
 * What the undefined-behaviour sanitizer leaves out: what the address sanitizer finds as well, and alignment unless all is asked for
 * (OCTAVO_TEST_FULL). With them the compiler takes nearly three times as long.
 */
const skippedChecks = [
  "null",
  "object-size",
  "pointer-overflow",
  ...(process.env.OCTAVO_TEST_FULL ? [] : ["alignment"]),
];
/** Kernels of an instruction set. */
const isTable = (source) => /\/kernels[._][^/]*\.cpp$/.test(source);
/** The path of a table's kernels: `avx512_bf16` of `kernels.avx512bf16.cpp`. */
const tablePath = (source) =>
  /\/kernels[._]([^/]*)\.cpp$/.exec(source)[1].replace(/^avx512(?=\w)/, "avx512_");
/** The instruction set that a path extends. */
const setOf = (path) => path.split("_")[0];
/**
 * `env` is for the programs; `mains` stands in the source of each that may say something here. `isWatched` says which sources of the core
 * are compiled for the variant: of the rest, the addon's own objects are linked. `tableFlags` are more flags for tables of kernels, whose
 * unrolled loops have locals by the thousand: calls instead of inline checks, and no watch on the end of a local's scope, take the
 * compiler a quarter of the time.
 */
const variants = {
  plain,
  address: {
    flags: [
      ...sanitized,
      "-fsanitize=address,undefined",
      `-fno-sanitize=${skippedChecks.join(",")}`,
      "-fno-sanitize-recover=all",
      "-fno-omit-frame-pointer",
    ],
    tableFlags: ({ version }) => [
      "-fno-sanitize-address-use-after-scope",
      ...(version.includes("clang")
        ? ["-mllvm", "-asan-instrumentation-with-call-threshold=0"]
        : ["--param", "asan-instrumentation-with-call-threshold=0"]),
    ],
    env: { OCTAVO_TEST_QUICK: "1" },
    isWatched: (source) => !isTable(source) || pathsHere.includes(tablePath(source)),
  },
  // Threads share work the same way whatever instruction set computes it.
  thread: {
    flags: [...sanitized, "-fsanitize=thread"],
    env: bestTarget,
    mains: /ThreadPool|std::thread/,
    isWatched: (source) => !isTable(source) || setOf(tablePath(source)) === setOf(pathsHere.at(-1)),
  },
  // Portable kernels, and what no instruction set changes, are tested above, without emulation.
  neon: {
    flags: ["-O2"],
    env: bestTarget,
    mains: /targets\(\)/,
    targetArch: "arm64",
    compiler: "aarch64-linux-gnu-g++",
    runner: ["qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"],
  },
};

const asked = process.argv.slice(2);
const names = [
  ...(asked.includes("--sanitize") ? ["address", "thread"] : []),
  ...(asked.includes("--neon") ? ["neon"] : []),
];
const only = asked.filter((argument) => !argument.startsWith("--"));
const allMains = filesBelow(tests, (path) => path.endsWith("_test.cpp")).filter(
  (path) => only.length === 0 || only.some((part) => path.includes(part)),
);

async function runVariant(name) {
  const {
    flags,
    env,
    targetArch = arch(),
    compiler: wanted,
    runner = [],
    tableFlags = () => [],
    isWatched = () => true,
    mains: meant = /main/,
  } = variants[name];
  const compiler = wanted === undefined ? findCompiler() : installed(wanted);
  if (compiler === undefined || (runner.length > 0 && installed(runner[0]) === undefined)) {
    say(`SKIPPED  native tests (${name}): ${wanted} and ${runner[0]} are not both installed`);
    return 0;
  }
  const folder = join(root, "packages/kernels/build", `tests-${name}`);
  const mains = allMains.filter((path) => meant.test(readFileSync(join(root, path), "utf8")));
  const isOwn = (path) => isCore(path) || path.startsWith(`${tests}/support/`) || mains.includes(path);
  const units = nativeUnits(
    targetArch,
    flags,
    (path) => isOwn(path) && (isWatched(path) || !isCore(path)),
  ).map((unit) =>
    isTable(unit.source) ? { ...unit, flags: [...unit.flags, ...tableFlags(compiler)] } : unit,
  );
  say(`native tests (${name}): ${mains.length} test programs`);
  const built = await compileUnits(units, { compiler, objectFolder: folder });
  const addons = await compileUnits(
    nativeUnits(targetArch, addonBuild.flags, (path) => isCore(path) && !isWatched(path)),
    { compiler, objectFolder: addonBuild.objectFolder, includes: addonBuild.includes() },
  );
  const objectOf = (path) => built.objects[units.findIndex(({ source }) => source === path)];
  // The variant's own come first: of an inline function the linker takes the first that it meets.
  const shared = [
    ...units.filter(({ source }) => !mains.includes(source)).map(({ source }) => objectOf(source)),
    ...addons.objects,
  ];
  let failed = 0;
  const waiting = [...mains];
  const worker = async () => {
    for (let main = waiting.shift(); main !== undefined; main = waiting.shift()) {
      const binary = join(folder, basename(main, ".cpp"));
      await must("linking", compiler.command, [
        ...flags,
        "-pthread",
        "-o",
        binary,
        objectOf(main),
        ...shared,
      ]);
      const [command, ...args] = [...runner, binary];
      const { code, output } = await capture(command, args, { env: { ...process.env, ...env } });
      process.stderr.write(output);
      say(`${code === 0 ? "ok" : "FAILED"}  ${basename(main, ".cpp")} (${name})`);
      if (code !== 0) failed++;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return failed;
}

function installed(command) {
  try {
    const version = execFileSync(command, ["--version"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return { command, version: version.split("\n")[0] };
  } catch {
    return undefined;
  }
}

let failed = allMains.length > 0 ? 0 : 1;
for (const name of names.length > 0 ? names : ["plain"]) failed += await runVariant(name);
process.exit(failed === 0 ? 0 : 1);
