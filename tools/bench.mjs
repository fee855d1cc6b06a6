// `npm run bench -- NAME`: sets up what is missing and runs bench/src/NAME.ts in a fresh process. What lies in folders is not a
// benchmark but belongs to one.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fail, root, run } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

/** Native measuring programs that a benchmark runs. */
const nativePrograms = { cpu: ["machine_bench"], kernels: ["matrix_bench", "attention_bench", "ops_bench"] };

const names = readdirSync(join(root, "bench/src"))
  .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
  .map((file) => file.slice(0, -".ts".length));
const [name, ...rest] = process.argv.slice(2);
if (!names.includes(name)) {
  fail(`usage: npm run bench -- NAME [flags], where NAME is one of ${names.join(", ")}`);
}
await setup();
if (Object.hasOwn(nativePrograms, name)) {
  const { buildNativeBenches } = await import("./native-bench.mjs");
  await buildNativeBenches(nativePrograms[name]);
}
const script = join(root, "bench/dist", `${name}.js`);
if (!existsSync(script)) fail(`${script} is missing; run \`npx tsc -b --force\``);
process.exit(await run(process.execPath, [script, ...rest]));
