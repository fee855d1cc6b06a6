// `npm run check`: everything CI holds a change to, cheapest first. `--without-tests` leaves out what `npm test` ran already.
import { join } from "node:path";
import { must, root } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

await setup();
const bin = (name) => join(root, "node_modules", ".bin", name);
await must("format", bin("oxfmt"), ["--check"]);
await must("lint", bin("oxlint"), ["--type-aware", "--deny-warnings"]);
if (!process.argv.includes("--without-tests")) await must("tests", process.execPath, ["tools/test.mjs"]);
await must("native tests", process.execPath, ["tools/native-tests.mjs", "--sanitize", "--neon"]);
await must("examples", process.execPath, ["tools/run-examples.mjs"]);
await must("end to end", process.execPath, ["tools/end-to-end.mjs"]);
