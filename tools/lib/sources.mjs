// What the structure tests read of the sources, by their text: no compiler has to run first.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { filesBelow, root } from "./steps.mjs";

export const sourceFolders = ["packages", "models", "bench", "examples", "tools"];

/** Files of the workspace whose name ends in one of the endings; fixtures are left out. */
export function sourcesOf(...endings) {
  return sourceFolders
    .flatMap((folder) => filesBelow(folder, (path) => endings.some((ending) => path.endsWith(ending))))
    .filter((path) => !path.includes("/fixtures/"));
}

export const isTest = (path) => /\.test\.(ts|mjs)$|\/testing\//.test(path);

export const textOf = (path) => readFileSync(join(root, path), "utf8");

export const manifestOf = (folder) => JSON.parse(textOf(join(folder, "package.json")));

const importPattern =
  /^\s*(?:import|export)\s+(type\s)?(?:[\w\s{},*$]*?\bfrom\s*)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/gm;

/** What a module imports: `target` as written; `isLazy` for `import()`, `isType` where nothing is left of it once compiled. */
export function importsOf(path) {
  return [...textOf(path).matchAll(importPattern)].map(([, type, now, later]) => ({
    target: now ?? later,
    isType: type !== undefined,
    isLazy: later !== undefined,
  }));
}

/** The source that a relative import of `path` names. */
export function resolveImport(path, target) {
  const named = join(path, "..", target);
  const source = named.replace(/\.js$/, ".ts");
  return existsSync(join(root, source)) ? source : named;
}

const definitionPattern =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const\s+enum|type|interface|class|const|let|function\*?|enum)\s+([A-Za-z_$][\w$]*)/gm;

/** Names that a module defines and exports; what it only passes on is not among them. */
export function exportedDefinitions(path) {
  return new Set([...textOf(path).matchAll(definitionPattern)].map(([, name]) => name));
}
