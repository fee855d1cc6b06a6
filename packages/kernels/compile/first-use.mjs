// `node first-use.mjs PATH`: compiles the installed package's kernels into PATH. Exits with 3 where there is no compiler.
import { mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { addonIncludes, compileBelow, linkAddon, probeCompiler, unitsBelow } from "./compile.mjs";

const [path] = process.argv.slice(2);
const base = fileURLToPath(new URL("..", import.meta.url));
const compiler = probeCompiler();
if (compiler === undefined) process.exit(3);

process.stderr.write(
  `octavo: no prebuilt kernels fit ${process.platform}-${process.arch}; compiling them once with ${compiler.version}, for a minute or two\n`,
);
// Beside the result, so that concurrent first starts do not share objects; the last one to finish wins.
const objectFolder = mkdtempSync(join(dirname(path), "objects-"));
try {
  const units = unitsBelow(base, "native");
  const includes = addonIncludes(fileURLToPath(import.meta.url));
  const { objects } = await compileBelow(base, units, { compiler, objectFolder, includes });
  await linkAddon(objects, path, { compiler });
} catch (error) {
  process.stderr.write(`octavo: ${error.message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(objectFolder, { recursive: true, force: true });
}
