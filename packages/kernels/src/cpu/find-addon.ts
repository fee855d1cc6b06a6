import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, homedir, platform } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemProblem } from "@octavo/protocol/errors";
import { makeFolder } from "@octavo/protocol/make-folder";

const packageFolder = fileURLToPath(new URL("../..", import.meta.url));

/** Whether this is the repository, where kernels are built from what stands there, and nothing else fits. */
export const isClone = existsSync(join(packageFolder, "tsconfig.json"));

/** Built in a clone; not part of the published package. */
export const builtAddon = join(packageFolder, "build", "octavo_kernels.node");

/** Packages with prebuilt kernels that may fit; npm installs the one whose system, processor and C library are this machine's. */
export function prebuiltPackages(system: string = platform(), processor: string = arch()): readonly string[] {
  const base = `@octavo/kernels-${system}-${processor}`;
  return system === "linux" ? [`${base}-gnu`, `${base}-musl`] : [base];
}

/** Files that may be this machine's kernels, best first: prebuilt, compiled by an earlier start. */
export function addonCandidates(): readonly string[] {
  const require = createRequire(import.meta.url);
  const prebuilt = prebuiltPackages().flatMap((name) => {
    try {
      return [require.resolve(`${name}/octavo_kernels.node`)];
    } catch {
      return [];
    }
  });
  return [...prebuilt, compiledAddon()].filter((path) => existsSync(path));
}

/** Where kernels compiled on first use are kept: by package version, so that another version compiles its own. */
export function compiledAddon(): string {
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  const manifest = readFileSync(join(packageFolder, "package.json"));
  const version = createHash("sha256").update(manifest).update(packageFolder).digest("hex").slice(0, 16);
  return join(cache, "octavo", "kernels", `${platform()}-${arch()}-${version}`, "octavo_kernels.node");
}

/**
 * Compiles the kernels of the installed package for this machine, which takes minutes; resolves to undefined and why not where it
 * cannot be done. The compiler's progress goes to standard error.
 */
export function compileAddon(): { readonly path?: string; readonly reason?: string } {
  const script = join(packageFolder, "compile", "first-use.mjs");
  if (!existsSync(join(packageFolder, "native")))
    return { reason: "their sources are not part of this installation" };
  const path = compiledAddon();
  try {
    makeFolder(join(path, ".."));
  } catch (cause) {
    return {
      reason: `${join(path, "..")} cannot be written: ${systemProblem(cause)}`,
    };
  }
  const { status } = spawnSync(process.execPath, [script, path], { stdio: ["ignore", 2, 2] });
  if (status === 0 && existsSync(path)) return { path };
  return {
    reason: status === noCompiler ? "there is no C++ compiler to build them with" : "compiling them failed",
  };
}

/** Exit status of `compile/first-use.mjs` without a compiler. */
const noCompiler = 3;
