import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { OctavoError } from "@octavo/protocol/errors";
import type { NativeAddon } from "./addon.js";
import { enumerations } from "./enumerations.js";
import { addonCandidates, builtAddon, compileAddon, isClone, prebuiltPackages } from "./find-addon.js";

/** `kInterfaceVersion` of `native/binding/addon.cpp`. */
const interfaceVersion = 10;

/**
 * Loads the compiled kernels: in a clone those built there; else prebuilt ones of this platform, or those that an earlier start
 * compiled; else compiles them, if there is a compiler. Throws `native_unavailable` when none load here or they are of another build.
 */
export function loadAddon(path?: string): NativeAddon {
  if (path !== undefined) return loadFrom(path);
  loaded ??= isClone ? loadFrom(builtAddon) : loadInstalled();
  return loaded;
}

let loaded: NativeAddon | undefined;

function loadInstalled(): NativeAddon {
  const failures: string[] = [];
  for (const candidate of addonCandidates()) {
    try {
      return loadFrom(candidate);
    } catch (thrown) {
      failures.push(OctavoError.from(thrown).message);
    }
  }
  const compiled = compileAddon();
  if (compiled.path !== undefined) return loadFrom(compiled.path);
  const [, wanted] = /^(.*?)(?:-gnu)?$/.exec(prebuiltPackages()[0] ?? "") ?? [];
  throw new OctavoError(
    "native_unavailable",
    failures[0] ??
      `No kernels for this machine (${process.platform}-${process.arch}): no package ${wanted} is installed, and ${compiled.reason}. ` +
        "Install again without --omit=optional, or install a C++ compiler (Debian/Ubuntu: `apt-get install g++`).",
  );
}

/** The file of the kernels that run: other builds are measured again. */
export function loadedAddonPath(): string {
  return loadedPath ?? builtAddon;
}

let loadedPath: string | undefined;

function loadFrom(path: string): NativeAddon {
  if (!existsSync(path)) {
    throw new OctavoError(
      "native_unavailable",
      `The compiled kernels are missing (${path}). Run \`npm run setup\` in the repository to build them; it needs a C++ compiler.`,
    );
  }
  let addon: Partial<NativeAddon>;
  try {
    addon = createRequire(import.meta.url)(path) as Partial<NativeAddon>;
  } catch (cause) {
    throw new OctavoError(
      "native_unavailable",
      `The compiled kernels at ${path} do not load on this machine (${OctavoError.from(cause).message}). ${remedy}`,
      { cause },
    );
  }
  loadedPath = path;
  return checkInterface(addon, path);
}

/** What puts kernels right that do not fit. */
const remedy = isClone
  ? "Run `npm run setup` in the repository to build them here."
  : "Install octavo again, with the same version of all of its packages.";

/** Kernels of other sources would take arguments for what they are not. */
export function checkInterface(addon: Partial<NativeAddon>, path: string): NativeAddon {
  const found = addon.interfaceVersion;
  if (found !== interfaceVersion)
    throw otherSources(path, `interface ${found ?? "unknown"}, needed is ${interfaceVersion}`);
  for (const [name, members] of Object.entries(enumerations)) {
    if (String(addon.enumerations?.[name]) !== String(members))
      throw otherSources(path, `they list another ${name}`);
  }
  return addon as NativeAddon;
}

function otherSources(path: string, difference: string): OctavoError {
  return new OctavoError(
    "native_unavailable",
    `The compiled kernels at ${path} were built from other sources (${difference}). ${remedy}`,
  );
}

/** Failures of the addon carry one of our codes; anything else is a defect. */
export function fromNative(thrown: unknown): OctavoError {
  if (thrown instanceof Error && "code" in thrown) {
    if (thrown.code === "out_of_memory" || thrown.code === "artifact_invalid") {
      return new OctavoError(thrown.code, thrown.message, { cause: thrown });
    }
  }
  return OctavoError.from(thrown);
}
