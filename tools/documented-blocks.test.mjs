// YAML and JSON that documents print is read by the part of the product that its file is for; TypeScript is type-checked.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { readerOf } from "./lib/documented-readers.mjs";
import { isProgram, typeProblems, unchecked } from "./lib/documented-types.mjs";
import { filesBelow, root } from "./lib/steps.mjs";

const documents = filesBelow(".", (path) => path.endsWith(".md"));

/** Blocks of these languages, with the document and the line that each begins on. */
function blocksIn(document, languages) {
  const text = readFileSync(join(root, document), "utf8");
  return [...text.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm)]
    .filter(([, language]) => languages.includes(language))
    .map(([, language, code], index, { length }) => ({
      language,
      code,
      name: `${document} ${language} ${index + 1} of ${length}`,
    }));
}

const configurations = documents.flatMap((document) => blocksIn(document, ["yaml", "yml", "json", "jsonl"]));

for (const { language, code, name } of configurations)
  test(`${name} is read by what it is for`, async () => {
    const read = readerOf(language, code);
    assert.ok(read, "no reader is known: add it to tools/lib/documented-readers.mjs");
    await read(code);
  });

/** The block with the first name of a file of YAML, or the one that tells what JSON is, misspelt. */
function misspelt(language, code) {
  return language === "json"
    ? code.replace(/"(kind|keys|input|error)":/, '"$1q":')
    : code.replace(/^(\s*(?:- )?(?:\{ ?)?[a-z][\w-]*[a-z]):/m, "$1q:");
}

test("what documents print is refused where a name is misspelt", async () => {
  for (const { language, code, name } of configurations) {
    const read = readerOf(language, code);
    await assert.rejects(
      async () => read(misspelt(language, code)),
      ({ code: refused, name: kind }) => refused !== undefined || kind === "ZodError",
      name,
    );
  }
});

test("programs that documents print have the types that they use", () => {
  const blocks = documents.flatMap((document) =>
    blocksIn(document, ["ts", "js", "typescript", "javascript"]),
  );
  assert.deepEqual(typeProblems(blocks.filter(({ code }) => isProgram(code))), []);
  const unused = unchecked.filter(([beginning]) => !blocks.some(({ code }) => code.startsWith(beginning)));
  assert.deepEqual(unused, [], "no document prints what is left out");
});

test("a program that uses what is not there is found", () => {
  const code = 'import { LLM } from "octavo/engine";\nawait LLM.lode("octavo-mini");\n';
  assert.match(
    typeProblems([{ code, name: "page" }]).join(),
    /^page: error TS\d+: Property 'lode' does not exist/,
  );
});
