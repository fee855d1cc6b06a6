import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { OctavoError } from "@octavo/protocol/errors";
import { stateOf } from "../model/weight-cache/file-state.js";

/** What the files of checkpoints were when their weights were last read, so that others are not taken for them. */
export class FileStates {
  readonly #states: ReadonlyMap<string, string | undefined>;

  constructor(checkpoints: readonly Checkpoint[]) {
    this.#states = new Map(checkpoints.flatMap(pathsOf).map((path) => [path, stateOf(path)?.text]));
  }

  /** Throws `artifact_invalid`, ending in `advice`, where a file changed. */
  check(checkpoint: Checkpoint, advice: string): void {
    for (const path of pathsOf(checkpoint))
      if (this.#states.get(path) !== stateOf(path)?.text)
        throw new OctavoError("artifact_invalid", `${path} changed ${advice}.`);
  }
}

function pathsOf({ tensors }: Checkpoint): readonly string[] {
  return [...new Set([...tensors.values()].map(({ path }) => path))];
}
