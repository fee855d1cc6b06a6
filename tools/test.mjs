// `npm test [-- PATTERN ...]`: sets up what is missing, then runs every test from the compiled output.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { filesBelow, must, root, run, say } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

await setup();

const patterns = process.argv.slice(2);
const compiled = ["packages", "models"]
  .flatMap((folder) => filesBelow(folder, (path) => /\/src\/.*\.test\.ts$|models\/.*\.test\.ts$/.test(path)))
  .map((path) => path.replace("/src/", "/dist/").replace(/\.ts$/, ".js"));
const plain = filesBelow("tools", (path) => path.endsWith(".test.mjs"));
const files = [...compiled, ...plain].filter(
  (path) => patterns.length === 0 || patterns.some((p) => path.includes(p)),
);
const missing = files.filter((path) => !existsSync(join(root, path)));
if (missing.length > 0)
  await must("tsc", process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-b", "--force"]);

say(`${files.length} test files`);
const code = await run(process.execPath, ["--test", "--test-concurrency=2", ...files]);
process.exit(code);
