import { nearestName, OctavoError } from "@octavo/protocol/errors";
import { embeddedModelName } from "./local-model.js";

/** A model on the hub, as a user names it. */
export interface ModelReference {
  /** "org/name" */
  readonly repository: string;
  /** Branch, tag or commit. */
  readonly revision: string;
  /** A GGUF file of the repository, by its path there. */
  readonly file: string | undefined;
  /** Which of several GGUF files, by the quantisation in its name: "Q4_K_M". */
  readonly quantization: string | undefined;
}

const part = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?$/;

/**
 * Reads `org/name[@revision]`, `org/name[@revision]:Q4_K_M` or `org/name[@revision]/path/to/file.gguf`.
 * @throws OctavoError `artifact_not_found` for text that can be neither a hub id nor, since it does not exist, a path
 */
export function parseModelReference(text: string): ModelReference {
  const match = /^([^/@:\s]+)\/([^/@:\s]+)(?:@([^:\s]+?))?(?::([A-Za-z0-9._-]+)|\/([^@:\s]+\.gguf))?$/.exec(
    text,
  );
  const [, organisation = "", name = "", revision, quantization, file] = match ?? [];
  const wellFormed = [organisation, name].every(
    (word) => part.test(word) && !word.includes("--") && !word.includes(".."),
  );
  if (match === null || !wellFormed) {
    const near = nearestName(text.slice(0, 300), [embeddedModelName]);
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    throw new OctavoError(
      "artifact_not_found",
      `${JSON.stringify(text.slice(0, 300))} is no existing path and no hub id (org/name, org/name@revision, org/name:Q4_K_M or org/name/file.gguf)${meant}`,
    );
  }
  if (file !== undefined) checkRepositoryPath(file);
  if (revision !== undefined) checkRepositoryPath(revision);
  return { repository: `${organisation}/${name}`, revision: revision ?? "main", file, quantization };
}

/**
 * A path inside a repository, as the hub lists it: it becomes a path in the cache, so it must not lead out of it.
 * @throws OctavoError `artifact_invalid`
 */
export function checkRepositoryPath(path: string): void {
  const segments = path.split("/");
  const safe = segments.every(
    (segment) => segment !== "" && segment !== "." && segment !== ".." && !/[\\:\0]/.test(segment),
  );
  if (!safe || path.length > 1024) {
    throw new OctavoError(
      "artifact_invalid",
      `${JSON.stringify(path.slice(0, 300))} is no path inside a repository`,
    );
  }
}
