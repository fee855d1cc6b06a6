// `npm test [-- WORD ...]`: sets up what is missing, then runs the tests that are quick, or those whose path contains a word.
// `--all` (`npm run test:all`) runs the slow ones too, `--full` also each simulation at its full size, `--runtime` those that meet more of Node than its language.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fail, must, root, run, say } from "./lib/steps.mjs";
import { isCompiled, isSlow, runtimeTests, testFiles } from "./lib/test-files.mjs";
import { setup } from "./setup.mjs";

await setup();

const { positionals: words, values } = parseArgs({
  allowPositionals: true,
  options: { all: { type: "boolean" }, full: { type: "boolean" }, runtime: { type: "boolean" } },
});
const matches = (path) =>
  words.length > 0
    ? words.some((word) => path.includes(word))
    : values.all || values.full || values.runtime || !isSlow(path);
const files = testFiles().filter(
  (path) => matches(path) && (!values.runtime || runtimeTests.some((wanted) => path.startsWith(wanted))),
);
// without files Node would look for some by itself
if (files.length === 0) fail(`no test file has ${words.join(" or ") || "a name"} in its path`);
if (!files.every(isCompiled)) {
  await must("tsc", process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-b", "--force"]);
}

say(`${files.length} test files`);
// hundreds of processes read the same modules; Node 20 knows no such cache
const env = {
  ...process.env,
  NODE_COMPILE_CACHE: join(root, ".octavo", "compile-cache"),
  ...(values.full && { OCTAVO_TEST_FULL: "1" }),
};
const reporter = ["--test-reporter=./tools/lib/test-reporter.mjs", "--test-reporter-destination=stdout"];
process.exit(await run(process.execPath, ["--test", "--test-concurrency=2", ...reporter, ...files], { env }));
