// Builds the native core's measuring programs (packages/kernels/native/bench/*_bench.cpp) into packages/kernels/build/bench,
// of the very objects the addon is linked from. `node tools/native-bench.mjs [NAME ...]` builds and runs them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { arch } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  addonBuild,
  compileUnits,
  findCompiler,
  isCore,
  nativeFolder,
  nativeUnits,
} from "./build-native.mjs";
import { digestOf, filesBelow, must, root, run } from "./lib/steps.mjs";

const benches = `${nativeFolder}/bench`;
const folder = join(root, "packages/kernels/build/bench");

export const nativeBenches = filesBelow(benches, (path) => path.endsWith("_bench.cpp")).map((path) =>
  basename(path, ".cpp"),
);

/** Builds what is stale; returns the folder of the programs. */
export async function buildNativeBenches(names = nativeBenches) {
  const compiler = findCompiler();
  const core = nativeUnits(arch(), addonBuild.flags, isCore);
  const isHelper = (path) =>
    path.startsWith(`${nativeFolder}/tests/support/`) ||
    (path.startsWith(`${benches}/`) && !path.endsWith("_bench.cpp"));
  const shared = nativeUnits(arch(), ["-O3"], isHelper);
  const built = await compileUnits(core, {
    compiler,
    objectFolder: addonBuild.objectFolder,
    includes: addonBuild.includes(),
  });
  const helpers = await compileUnits(shared, { compiler, objectFolder: join(folder, "objects") });
  mkdirSync(folder, { recursive: true });
  for (const name of names) {
    const main = nativeUnits(arch(), ["-O3"], (path) => path === `${benches}/${name}.cpp`);
    const own = await compileUnits(main, { compiler, objectFolder: join(folder, "objects") });
    const program = join(folder, name);
    const digest = digestOf(built.digest, helpers.digest, own.digest);
    const stamp = `${program}.digest`;
    if (existsSync(program) && existsSync(stamp) && readFileSync(stamp, "utf8") === digest) continue;
    const objects = [...own.objects, ...helpers.objects, ...built.objects];
    await must(`linking ${name}`, compiler.command, ["-pthread", "-o", program, ...objects]);
    writeFileSync(stamp, digest);
  }
  return folder;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const asked = process.argv.slice(2);
  await buildNativeBenches(asked.length > 0 ? asked : nativeBenches);
  for (const name of asked) process.exitCode ||= await run(join(folder, name), []);
}
