// The shape of the sources as tests: one meaning per exported name, files of a readable size, no import cycles, packages that
// ship no tests.
import assert from "node:assert/strict";
import test from "node:test";
import {
  exportedDefinitions,
  importsOf,
  isTest,
  manifestOf,
  resolveImport,
  sourcesOf,
  textOf,
} from "./lib/sources.mjs";
import { runtimeTests, slowTests, testFiles } from "./lib/test-files.mjs";

/** Lines that a file may have. */
const maxLines = 400;

test("an exported name is defined in one file of the workspace", () => {
  const definedIn = new Map();
  for (const path of sourcesOf(".ts")) {
    if (path.endsWith(".test.ts") || path.startsWith("examples/")) continue;
    for (const name of exportedDefinitions(path)) definedIn.set(name, [...(definedIn.get(name) ?? []), path]);
  }
  // every module that a scoring worker loads exports its `evaluators`
  definedIn.delete("evaluators");
  const twice = [...definedIn].filter(([, paths]) => paths.length > 1);
  assert.deepEqual(
    twice.map(([name, paths]) => `${name}: ${paths.join(", ")}`).toSorted(),
    [],
    "merge what is one idea, rename what is two, and export nothing that nobody imports",
  );
});

test(`no file is longer than ${maxLines} lines`, () => {
  const long = sourcesOf(".ts", ".mjs", ".cpp", ".h", ".inc", ".py")
    .map((path) => [path, textOf(path).split("\n").length - 1])
    .filter(([, lines]) => lines > maxLines);
  assert.deepEqual(long, []);
});

test("no module imports itself through others", () => {
  const modules = sourcesOf(".ts", ".mjs");
  const graph = new Map(
    modules.map((path) => [
      path,
      importsOf(path)
        .filter(({ target, isLazy }) => target.startsWith(".") && !isLazy)
        .map(({ target }) => resolveImport(path, target)),
    ]),
  );
  assert.deepEqual(cyclesOf(graph), []);
});

test("a package ships what it is, and neither tests nor their helpers", () => {
  const folders = sourcesOf("package.json").map((path) => path.slice(0, -"/package.json".length));
  for (const folder of folders) {
    const { files } = manifestOf(folder);
    assert.ok(files?.length > 0, `${folder}/package.json names its files`);
    if (!files.includes("dist")) continue;
    const sources = sourcesOf(".ts").filter((path) => path.startsWith(`${folder}/`) && isTest(path));
    if (sources.some((path) => path.endsWith(".test.ts")))
      assert.ok(files.includes("!dist/**/*.test.*"), `${folder} ships tests`);
    if (sources.some((path) => path.includes("/testing/")))
      assert.ok(files.includes("!dist/**/testing"), `${folder} ships testing helpers`);
  }
});

test("lists of tests name tests", () => {
  const files = testFiles();
  const stale = [...slowTests, ...runtimeTests].filter(
    (start) => !files.some((path) => path.startsWith(start)),
  );
  assert.deepEqual(stale, []);
});

/** Groups of modules that reach each other (Tarjan's strongly connected components of more than one). */
function cyclesOf(graph) {
  const order = new Map();
  const lowest = new Map();
  const stack = [];
  const cycles = [];
  const visit = (node) => {
    order.set(node, order.size);
    lowest.set(node, order.get(node));
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) lowest.set(node, Math.min(lowest.get(node), lowest.get(next)));
    }
    if (lowest.get(node) !== order.get(node)) return;
    const group = stack.splice(stack.indexOf(node));
    if (group.length > 1) cycles.push(group);
  };
  for (const node of graph.keys()) if (!order.has(node)) visit(node);
  return cycles;
}
