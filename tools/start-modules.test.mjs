// What a first token waits for: modules that are read before weights are packed, and those read meanwhile. Compiled output is
// looked at, where imports of types alone are gone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { root } from "./lib/steps.mjs";

const staticImport = /^(?:import|export)\b[^;]*?\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"/gm;

/** Paths of the modules that importing `entry` reads, and names of the packages that are not ours. */
function reachedFrom(entry) {
  const modules = new Set();
  const packages = new Set();
  const visit = (path) => {
    if (modules.has(path)) return;
    modules.add(path);
    for (const [, from, alone] of readFileSync(join(root, path), "utf8").matchAll(staticImport)) {
      const target = from ?? alone;
      if (target.startsWith(".")) visit(join(dirname(path), target));
      else if (target.startsWith("@octavo/")) visit(entryOf(target));
      else if (!target.startsWith("node:")) packages.add(target);
    }
  };
  visit(entry);
  return { modules: [...modules], packages: [...packages] };
}

/** The file that `@octavo/engine/parts` or `@octavo/text/tokenizer/bpe` names, by the exports of its package.json. */
function entryOf(specifier) {
  const [, name, ...subpath] = specifier.split("/");
  const { exports } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  const wanted = `./${subpath.join("/")}`;
  const exact = exports[subpath.length === 0 ? "." : wanted];
  if (exact !== undefined) return join("packages", name, exact.default);
  const pattern = Object.keys(exports).find(
    (key) => key.endsWith("*") && wanted.startsWith(key.slice(0, -1)),
  );
  return join("packages", name, exports[pattern].default.replace("*", wanted.slice(pattern.length - 1)));
}

/** The modules below `PACKAGE/FOLDER`, or the one module of that path. */
const within = (modules, place) => {
  const path = join("packages", place.replace("/", "/dist/"));
  return modules.filter((module) => module.startsWith(`${path}/`) || module === `${path}.js`);
};
const runsRequests = ["create-engine", "step", "requests", "admission", "scheduler/scheduler"].map(
  (place) => `engine/${place}`,
);
const compilesText = ["text/tokenizer", "text/structured", "text/template/jinja"];

test("importing the engine reads what opens and packs a model, and little else", () => {
  const { modules, packages } = reachedFrom("packages/engine/dist/index.js");
  assert.ok(modules.length > 40, "the walk finds the engine's modules");
  assert.deepEqual(packages, []);
  for (const later of [...runsRequests, ...compilesText, "artifacts/quantization/schemes"])
    assert.deepEqual(within(modules, later), [], `${later} can wait until weights are packed`);
  const others = modules.length - within(modules, "artifacts/families").length;
  assert.ok(others < 120, `${others} modules beside the families`);
});

test("what is read while weights are packed needs no package of others", () => {
  const { modules, packages } = reachedFrom("packages/engine/dist/llm/parts-beside-weights.js");
  assert.ok(within(modules, "text/tokenizer").length > 10);
  assert.deepEqual(packages, []);
  assert.deepEqual(
    within(modules, "text/structured/automaton"),
    [],
    "the first grammar reads what compiles it",
  );
  for (const never of [
    "artifacts/hub",
    "artifacts/quantization",
    "engine/adapters/adapter-set",
    "artifacts/safetensors",
  ])
    assert.deepEqual(within(modules, never), [], never);
});

test("octavo serve reads what it needs to load a model, and the rest of the server while weights are packed", () => {
  const { modules } = reachedFrom("packages/cli/dist/serve/run-serve.js");
  assert.ok(modules.includes("packages/server/dist/config.js"), "flags are checked before");
  for (const folder of ["routes", "generation", "metering", "service"])
    assert.deepEqual(
      modules.filter((path) => path.startsWith(`packages/server/dist/${folder}`)),
      [],
      folder,
    );
  for (const later of [
    ...runsRequests,
    "text/tokenizer",
    "text/structured",
    "text/parsers/formats",
    "text/parsers/reasoning",
  ])
    assert.deepEqual(within(modules, later), [], `${later} can wait until weights are packed`);
  const others = modules.length - within(modules, "artifacts/families").length;
  assert.ok(others < 252, `${others} modules beside the families`);
});

test("octavo --version and --help read the tree of commands, and octavo serve --help its options", () => {
  const main = reachedFrom("packages/cli/dist/main.js");
  assert.deepEqual(main.packages, ["commander"]);
  assert.ok(main.modules.length < 12, `${main.modules.length} modules for --version`);
  const serve = reachedFrom("packages/cli/dist/commands/serve.js");
  assert.deepEqual(serve.packages, ["commander"]);
  assert.ok(serve.modules.includes("packages/server/dist/config.js"), "the walk finds the options");
  assert.ok(serve.modules.length < 35, `${serve.modules.length} modules for serve --help`);
});
