// `node examples/browser/serve.mjs [model folder] [port]` serves the page to browsers of this machine.
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { servePage } from "./site.mjs";

const embedded = createRequire(import.meta.url).resolve("@octavo/octavo-mini/package.json");
const [, , folder = dirname(embedded), port = "8010"] = process.argv;
const server = await servePage(folder, Number(port));
process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
