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
