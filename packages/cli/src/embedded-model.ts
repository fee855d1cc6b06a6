import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";

/** The folder of octavo-mini, which an optional package brings. Throws `artifact_not_found` without it. */
export function embeddedModelFolder(): string {
  try {
    return dirname(createRequire(import.meta.url).resolve("@octavo/octavo-mini/package.json"));
  } catch (cause) {
    throw new OctavoError(
      "artifact_not_found",
      "no model was named, and the embedded one is not installed; name a model, or run: npm install @octavo/octavo-mini",
      { param: "model", cause },
    );
  }
}

/** The model that was named; undefined for the embedded one, which is also that of the name octavo-mini. */
export function namedModel(given: string | undefined): string | undefined {
  return given === "octavo-mini" && !existsSync(given) ? undefined : given;
}

/** Where a model is: the embedded one by its name, others as they were given. */
export function modelSource(given: string): string {
  return namedModel(given) ?? embeddedModelFolder();
}
