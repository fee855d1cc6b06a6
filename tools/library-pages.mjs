// docs/reference/library.md and a page for each subpath of `octavo`, from the declarations and docstrings that the compiler writes.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./lib/steps.mjs";

const manifest = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
const cli = "packages/cli";

/** What a subpath is for; also the order of the pages. */
const subpaths = {
  engine: "load a model; chat, generate, embed; tools and objects under a schema",
  "engine/parts": "the engine's parts for use alone",
  "ai-sdk": "a provider for the Vercel AI SDK",
  evals: "datasets, evaluators, judges, checks, runs and reports",
  optimize: "prompts, examples and descriptions improved by search; findings and their fixes",
  gateway: "one endpoint in front of many servers: its configuration, exchange and HTTP listener",
  text: "tokenizers, chat templates, constraints, output parsers, prefix hashes",
  tracing: "spans of calls, exporters, conventions",
};

/** The pages by path. */
export function libraryPages() {
  const { exports } = manifest(cli);
  const pages = {};
  const rows = Object.entries(subpaths).map(([name, what]) => {
    const declarations = exportsOf(join(cli, exports[`./${name}`].types));
    const file = `library/${name.replace("/", "-")}.md`;
    pages[`docs/reference/${file}`] = pageOf(name, what, declarations);
    return `| [\`octavo/${name}\`](${file}) | ${what} | ${declarations.size} |`;
  });
  pages["docs/reference/library.md"] = `${[
    "# The library",
    "",
    "What the package `octavo` exports, by subpath, with the docstrings of its code. These pages are written by `node tools/readme.mjs`.",
    "",
    "| | | exports |",
    "| --- | --- | ---: |",
    ...rows,
    "",
    "Errors are `OctavoError`s with a code; [errors](errors.md) lists them.",
  ].join("\n")}\n`;
  return pages;
}

function pageOf(name, what, declarations) {
  const entries = [...declarations].toSorted(
    ([a, left], [b, right]) => order(left) - order(right) || (a < b ? -1 : 1),
  );
  const parts = entries.map(([exported, { docs, code }]) =>
    [`## ${exported}`, "", ...(docs === "" ? [] : [docs, ""]), "```ts", code, "```", ""].join("\n"),
  );
  return `${[`# octavo/${name}`, "", `${what[0].toUpperCase()}${what.slice(1)}.`, "", ...parts].join("\n").trimEnd()}\n`;
}

/** What runs comes before what describes it. */
const order = ({ code }) => ["class", "function", "const"].findIndex((kind) => code.startsWith(kind)) >>> 0;

/** The declarations that a module exports, by name. Those of packages of others are left out. */
function exportsOf(path) {
  const text = readFileSync(join(root, path), "utf8");
  const found = new Map(declarationsOf(text));
  for (const [, names, from] of text.matchAll(/^export (?:type )?(\*|\{[^}]*\}) from "([^"]+)";/gm)) {
    const target = declarationFile(path, from);
    if (target === undefined) continue;
    const theirs = exportsOf(target);
    const wanted = names === "*" ? [...theirs.keys()] : names.slice(1, -1).split(",");
    for (const written of wanted) {
      const [inner, outer = inner] = written
        .trim()
        .replace(/^type /, "")
        .split(" as ");
      if (inner !== "" && theirs.has(inner)) found.set(outer, theirs.get(inner));
    }
  }
  return found;
}

function declarationFile(path, from) {
  if (from.startsWith(".")) return join(dirname(path), from.replace(/\.js$/, ".d.ts"));
  const [scope, name, ...subpath] = from.split("/");
  if (scope !== "@octavo") return undefined;
  const folder = join("packages", name);
  if (!existsSync(join(root, folder))) return undefined;
  const { exports } = manifest(folder);
  const target = exports[[".", ...subpath].join("/")] ?? exports["./*"];
  return join(folder, target.types.replace("*", subpath.join("/")));
}

/** Top-level statements begin in the first column, as the compiler prints them. */
function* declarationsOf(text) {
  const starts = [
    ...text.matchAll(
      /^(?:\/\*\*(?:[^*]|\*(?!\/))*\*\/\n)?export (?:declare )?(?:abstract )?(class|interface|type|const|function) (\w+)/gm,
    ),
  ];
  const overloads = new Map();
  for (const [index, { 0: head, 2: name, index: at }] of starts.entries()) {
    const next = text.slice(at + head.length).search(/^(?:\/\*\*|export |declare |import |\/\/#)/m);
    const end = next < 0 ? text.length : at + head.length + next;
    const [docs] = /^\/\*\*(?:[^*]|\*(?!\/))*\*\/\n/.exec(head) ?? [""];
    const code = text
      .slice(at + docs.length, end)
      .replace(/^export (declare )?(abstract )?/, "")
      .replaceAll(/^ {4}(#private;|private .*;)\n/gm, "")
      .replaceAll(/^ +/gm, (indent) => " ".repeat(Math.ceil(indent.length / 2)))
      .trimEnd();
    const earlier = overloads.get(name);
    overloads.set(name, {
      docs: earlier?.docs || plain(docs),
      code: earlier === undefined ? code : `${earlier.code}\n${code}`,
    });
    if (starts[index + 1]?.[2] !== name) yield [name, overloads.get(name)];
  }
}

function plain(docs) {
  return docs
    .replace(/^\/\*\* ?/, "")
    .replace(/\s*\*\/\s*$/, "")
    .replaceAll(/^ \* ?/gm, "")
    .replaceAll(/^@throws /gm, "\nThrows ")
    .trim();
}
