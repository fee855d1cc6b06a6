// `npm test [-- PATTERN ...]`: sets up what is missing, then runs every test from the compiled output; `--without PATTERN` leaves
// out the files whose path contains it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fail, filesBelow, must, root, run, say } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

await setup();

/** Where tsc puts a source: `src` is the root of a package, the folder itself that of a model. */
function compiled(source) {
  const moved = source.startsWith("models/")
    ? source.replace(/^(models\/[^/]+)\//, "$1/dist/")
    : source.replace("/src/", "/dist/");
  return moved.replace(/\.ts$/, ".js");
}

const { positionals: patterns, values } = parseArgs({
  allowPositionals: true,
  options: { without: { type: "string", multiple: true, default: [] } },
});
const sources = ["packages", "models", "bench"].flatMap((folder) =>
  filesBelow(folder, (path) => path.endsWith(".test.ts")),
);
const files = [...sources.map(compiled), ...filesBelow("tools", (path) => path.endsWith(".test.mjs"))].filter(
  (path) =>
    (patterns.length === 0 || patterns.some((pattern) => path.includes(pattern))) &&
    !values.without.some((pattern) => path.includes(pattern)),
);
// without files Node would look for some by itself
if (files.length === 0) fail(`no test file has ${patterns.join(" or ") || "a name"} in its path`);
if (files.some((path) => !existsSync(join(root, path)))) {
  await must("tsc", process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-b", "--force"]);
}

say(`${files.length} test files`);
// hundreds of processes read the same modules; Node 20 knows no such cache
const env = { ...process.env, NODE_COMPILE_CACHE: join(root, ".octavo", "compile-cache") };
process.exit(await run(process.execPath, ["--test", "--test-concurrency=2", ...files], { env }));
