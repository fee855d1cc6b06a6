// Writes the tables of endpoints and of fields without effect into docs/reference/http.md, from the built server's rows.
import { readFileSync, writeFileSync } from "node:fs";
import { endpointTable, fieldEffectTable } from "../packages/server/dist/routes/endpoints.js";

const path = new URL("../docs/reference/http.md", import.meta.url);
const page = readFileSync(path, "utf8");
const tables = [
  [/^\| Method \| Path \|.*\n(?:\|.*\n)+/m, endpointTable()],
  [/^\| Path \| Refused \|.*\n(?:\|.*\n)+/m, fieldEffectTable()],
];
writeFileSync(
  path,
  tables.reduce((text, [place, table]) => text.replace(place, () => `${table}\n`), page),
);
