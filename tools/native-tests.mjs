// Builds the native core with its standalone tests and runs them: plain, then under sanitizers with --sanitize.
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { arch } from "node:os";
import { compileUnits, findCompiler, nativeUnits } from "./build-native.mjs";
import { filesBelow, must, root, run, say } from "./lib/steps.mjs";

const native = "packages/kernels/native";
const variants = {
  plain: ["-O2", "-g"],
  address: [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
  ],
  thread: ["-O1", "-g", "-fsanitize=thread"],
};
const names = process.argv.includes("--sanitize") ? ["address", "thread"] : ["plain"];
const only = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));

const compiler = findCompiler();
const mains = filesBelow(`${native}/tests`, (path) => path.endsWith("_test.cpp")).filter(
  (path) => only.length === 0 || only.some((part) => path.includes(part)),
);
let failed = 0;
for (const name of names) {
  const flags = variants[name];
  const units = nativeUnits(
    arch(),
    flags,
    (path) =>
      !path.startsWith(`${native}/binding/`) &&
      !(path.startsWith(`${native}/tests/`) && /_(test|bench)\.cpp$/.test(path)),
  );
  const folder = join(root, "packages/kernels/build", `tests-${name}`);
  say(`native tests (${name}): ${units.length} files, ${mains.length} test programs`);
  const { objects } = await compileUnits(units, { compiler, objectFolder: folder });
  for (const main of mains) {
    const mainUnit = nativeUnits(arch(), flags, (path) => path === main);
    const { objects: mainObjects } = await compileUnits(mainUnit, { compiler, objectFolder: folder });
    const binary = join(folder, basename(main, ".cpp"));
    const link = [...flags, "-pthread", "-o", binary, ...mainObjects, ...objects];
    await must("linking", compiler.command, link);
    const code = await run(binary, [], {
      env: { ...process.env, OCTAVO_TEST_QUICK: name === "plain" ? "" : "1" },
    });
    say(`${code === 0 ? "ok" : "FAILED"}  ${basename(main, ".cpp")} (${name})`);
    if (code !== 0) failed++;
  }
}
if (!existsSync(join(root, native)) || mains.length === 0) failed++;
process.exit(failed === 0 ? 0 : 1);
