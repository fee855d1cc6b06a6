// `npm run check`: everything CI holds a change to, cheapest first. `--without-tests` leaves out what `npm run test:all` ran already.
import { join } from "node:path";
import { must, root } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

await setup();
const bin = (name) => join(root, "node_modules", ".bin", name);
const node = (what, ...args) => must(what, process.execPath, args);
await must("format", bin("oxfmt"), ["--check"]);
await must("lint", bin("oxlint"), ["--type-aware", "--deny-warnings"]);
if (!process.argv.includes("--without-tests")) await node("tests", "tools/test.mjs", "--all");
await node("native tests", "tools/native-tests.mjs", "--sanitize", "--neon");
await node("examples", "tools/run-examples.mjs");
await node("documented commands", "tools/run-documented.mjs");
await node("end to end", "tools/end-to-end.mjs");
await node("installed packages", "tools/release/try-installed.mjs");
