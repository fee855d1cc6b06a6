import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";

/** The name of the model that comes with Octavo. */
export const embeddedModelName = "octavo-mini";

/** The folder of the embedded model, which an optional package brings. Throws `artifact_not_found` without it. */
export function embeddedModelFolder(): string {
  try {
    return dirname(createRequire(import.meta.url).resolve(`@octavo/${embeddedModelName}/package.json`));
  } catch (cause) {
    throw new OctavoError(
      "artifact_not_found",
      `the embedded model is not installed; name another one, or run: npm install @octavo/${embeddedModelName}`,
      { param: "model", cause },
    );
  }
}

/** Whether a name is that of the embedded model, and of nothing in the working folder. */
export function isEmbeddedModel(given: string): boolean {
  return given === embeddedModelName && !existsSync(given);
}

/**
 * Where a model is on this machine: at its path, or the embedded one by its name. Undefined of what may be a hub's id.
 * @throws OctavoError `artifact_not_found` for a path with nothing there
 */
export function localModel(idOrPath: string): string | undefined {
  if (isEmbeddedModel(idOrPath)) return embeddedModelFolder();
  const path = resolve(idOrPath.startsWith("~/") ? join(homedir(), idOrPath.slice(2)) : idOrPath);
  if (idOrPath !== "" && existsSync(path)) return path;
  if (/^(?:[./~\\]|[A-Za-z]:[\\/])/.test(idOrPath))
    throw new OctavoError("artifact_not_found", `${idOrPath}: no such file or folder`);
  return undefined;
}
