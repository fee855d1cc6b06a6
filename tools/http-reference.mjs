// Writes the table of endpoints into docs/reference/http.md, from the built server's rows.
import { readFileSync, writeFileSync } from "node:fs";
import { endpointTable } from "../packages/server/dist/routes/endpoints.js";

const path = new URL("../docs/reference/http.md", import.meta.url);
const page = readFileSync(path, "utf8");
writeFileSync(path, page.replace(/^\| Method \| Path \|.*\n(?:\|.*\n)+/m, `${endpointTable()}\n`));
