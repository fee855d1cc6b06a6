// `npm run fuzz -- TARGET [--seconds 600] [--seed N]`: looks for inputs that crash what reads files and requests of strangers.
// Findings are written to .octavo/fuzz/TARGET/ and run again with `--input FILE`.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fail, root, say } from "./lib/steps.mjs";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "600" },
    seed: { type: "string", default: "1" },
    input: { type: "string" },
  },
});
if (!existsSync(join(root, "packages/text/dist/work.js")))
  fail("nothing is compiled yet; `npm run build` does it");
const { targets } = await import("./fuzz/targets.mjs");
const { fuzz, problemOf } = await import("./fuzz/fuzzer.mjs");
const [name] = positionals;
const target = Object.hasOwn(targets, name ?? "") ? targets[name] : undefined;
if (target === undefined)
  fail(
    `usage: npm run fuzz -- TARGET [--seconds N] [--seed N], where TARGET is one of ${Object.keys(targets).join(", ")}`,
  );

if (values.input !== undefined) {
  const problem = problemOf(target, readFileSync(values.input));
  say(problem ?? "the input is read, or refused as it should be");
  process.exit(problem === undefined ? 0 : 1);
}
const folder = join(root, ".octavo", "fuzz", name);
mkdirSync(folder, { recursive: true });
const save = (bytes, prefix) => {
  const path = join(folder, `${prefix}-${createHash("sha256").update(bytes).digest("hex").slice(0, 12)}`);
  writeFileSync(path, bytes);
  return path;
};
const endMs = Date.now() + Number(values.seconds) * 1000;
let shown = 0;
const result = fuzz(target, {
  seed: Number(values.seed),
  isOver: () => Date.now() >= endMs,
  onProblem: (bytes, problem) =>
    say(`${save(bytes, "problem")}:\n${problem.split("\n").slice(0, 8).join("\n")}`),
  onKept: (bytes) => void save(bytes, "reached"),
  onProgress: (reached) => {
    if (Date.now() - shown < 5000) return;
    shown = Date.now();
    say(JSON.stringify(reached));
  },
});
say(JSON.stringify(result));
process.exit(result.problems === 0 ? 0 : 1);
