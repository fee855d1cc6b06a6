// `npm start [-- FLAGS]`: sets up what is missing, then `octavo serve` with the embedded model unless --model names another.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

await setup();
const child = spawn(
  process.execPath,
  [join(root, "packages/cli/dist/main.js"), "serve", ...process.argv.slice(2)],
  { stdio: "inherit" },
);
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));

// npm does not pass SIGTERM on: a supervisor that ends npm must end the server too.
const parent = process.ppid;
const watch = setInterval(() => {
  if (process.ppid === parent) return;
  clearInterval(watch);
  child.kill("SIGTERM");
}, 500);
watch.unref();

child.on("close", (code, signal) => process.exit(code ?? (signal ? 0 : 1)));
