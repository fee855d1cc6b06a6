import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import type { NativeAddon } from "./addon.js";
import { enumerations } from "./enumerations.js";

/** `kInterfaceVersion` of `native/binding/addon.cpp`. */
const interfaceVersion = 6;

export const builtAddon = fileURLToPath(new URL("../../build/octavo_kernels.node", import.meta.url));

/** Loads the compiled kernels. Throws `native_unavailable` when they are missing, do not load here or are of another build. */
export function loadAddon(path: string = builtAddon): NativeAddon {
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
      `The compiled kernels at ${path} do not load on this machine (${OctavoError.from(cause).message}). Run \`npm run setup\` to build them here.`,
      { cause },
    );
  }
  return checkInterface(addon, path);
}

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
    `The compiled kernels at ${path} were built from other sources (${difference}). Run \`npm run setup\` in the repository to build them again.`,
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
