// Builds the native core with its standalone tests and runs them: plain; under sanitizers with --sanitize; the NEON build
// under qemu-user with --neon, where a cross compiler and qemu-aarch64 are installed (it says so and skips where not).
import { execFileSync } from "node:child_process";
import { basename, join } from "node:path";
import { arch, availableParallelism } from "node:os";
import {
  addonBuild,
  compileUnits,
  findCompiler,
  isCore,
  nativeFolder,
  nativeUnits,
} from "./build-native.mjs";
import { capture, filesBelow, must, root, say } from "./lib/steps.mjs";

const tests = `${nativeFolder}/tests`;
/** Fewer cases, on the machine's best instruction set alone. */
const bestTarget = { OCTAVO_TEST_QUICK: "1", OCTAVO_TEST_TARGETS: "best" };
const plain = { flags: ["-O2", "-g"], env: {} };
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
const isTable = (path) => /\/kernels[._][^/]*\.cpp$/.test(path);
/**
 * `env` is for the programs. `tableFlags` are more flags for tables of kernels, whose unrolled loops have locals by the thousand: calls
 * instead of inline checks, and no watch on the end of a local's scope, take the compiler a quarter of the time.
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
  },
  // Threads share work the same way whatever instruction set computes it.
  thread: {
    flags: [...sanitized, "-fsanitize=thread"],
    env: bestTarget,
  },
  // Portable kernels are tested above, without emulation.
  neon: {
    flags: ["-O2"],
    env: bestTarget,
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
const mains = filesBelow(tests, (path) => path.endsWith("_test.cpp")).filter(
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
  } = variants[name];
  const compiler = wanted === undefined ? findCompiler() : installed(wanted);
  if (compiler === undefined || (runner.length > 0 && installed(runner[0]) === undefined)) {
    say(`SKIPPED  native tests (${name}): ${wanted} and ${runner[0]} are not both installed`);
    return 0;
  }
  const folder = join(root, "packages/kernels/build", `tests-${name}`);
  const own = nativeUnits(
    targetArch,
    flags,
    (path) => path.startsWith(`${tests}/support/`) || mains.includes(path),
  );
  say(`native tests (${name}): ${mains.length} test programs`);
  const built = await compileUnits(own, { compiler, objectFolder: folder });
  // The plain tests link the addon's own objects.
  const core =
    name === "plain"
      ? await compileUnits(nativeUnits(targetArch, addonBuild.flags, isCore), {
          compiler,
          objectFolder: addonBuild.objectFolder,
          includes: addonBuild.includes(),
        })
      : await compileUnits(
          nativeUnits(targetArch, flags, isCore).map((unit) =>
            isTable(unit.source) ? { ...unit, flags: [...unit.flags, ...tableFlags(compiler)] } : unit,
          ),
          { compiler, objectFolder: folder },
        );
  const objectOf = (path) => built.objects[own.findIndex(({ source }) => source === path)];
  const shared = own.filter(({ source }) => !mains.includes(source)).map(({ source }) => objectOf(source));
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
        ...core.objects,
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

let failed = mains.length > 0 ? 0 : 1;
for (const name of names.length > 0 ? names : ["plain"]) failed += await runVariant(name);
process.exit(failed === 0 ? 0 : 1);
