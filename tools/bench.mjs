// `npm run bench -- NAME`: sets up what is missing and runs bench/src/NAME.ts in a fresh process.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fail, root, run } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

await setup();
const [name, ...rest] = process.argv.slice(2);
const script = join(root, "bench/dist", `${name}.js`);
if (name === undefined || !existsSync(script)) {
  const helpers = new Set(["results.ts", "served-model.ts", "load-client.ts"]);
  const names = readdirSync(join(root, "bench/src")).filter(
    (file) => file.endsWith(".ts") && !helpers.has(file),
  );
  fail(
    `usage: npm run bench -- NAME, where NAME is one of ${names.map((file) => file.replace(/\.ts$/, "")).join(", ")}`,
  );
}
process.exit(await run(process.execPath, [script, ...rest]));
