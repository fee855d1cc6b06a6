// Packs the JSON Schema Test Suite (https://github.com/json-schema-org/JSON-Schema-Test-Suite, MIT) for the grammar engine's
// tests: one file per draft, one group of cases per line.
// usage: node tools/oracle/json-schema-suite.mjs CHECKOUT COMMIT
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fail, root } from "../lib/steps.mjs";

const [checkout, commit] = process.argv.slice(2);
if (checkout === undefined || commit === undefined)
  fail("usage: node tools/oracle/json-schema-suite.mjs CHECKOUT COMMIT");
const target = join(root, "packages/text/fixtures/json-schema-test-suite");
mkdirSync(target, { recursive: true });

function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? files(path) : entry.name.endsWith(".json") ? [path] : [];
  });
}

for (const draft of ["draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"]) {
  const folder = join(checkout, "tests", draft);
  const groups = files(folder)
    .toSorted()
    .flatMap((path) =>
      JSON.parse(readFileSync(path, "utf8")).map(({ description, schema, tests }) => ({
        file: relative(folder, path).replace(/\.json$/, ""),
        description,
        schema,
        tests: tests.map(({ description: name, data, valid }) => ({ description: name, data, valid })),
      })),
    );
  writeFileSync(
    join(target, `${draft}.json`),
    `[\n${groups.map((group) => JSON.stringify(group)).join(",\n")}\n]\n`,
  );
}
copyFileSync(join(checkout, "LICENSE"), join(target, "LICENSE"));
writeFileSync(
  join(target, "README.md"),
  `The JSON Schema Test Suite at commit ${commit}, as tools/oracle/json-schema-suite.mjs packs it. See LICENSE.\n`,
);
