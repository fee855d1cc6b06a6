import { existsSync, mkdtempSync, rmdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";

/**
 * Throws `invalid_option` that names flag and folder where nothing can be made in it, or it cannot be made. Leaves nothing behind.
 * Tried before the folder is needed: making folders below one like /proc, Node's recursive `mkdir` never ends.
 */
export function checkFolder(flag: string, folder: string): void {
  const nearest = nearestFolder(resolve(folder));
  try {
    rmdirSync(mkdtempSync(join(nearest, ".octavo-")));
  } catch (thrown) {
    // /proc says of any new name that it is not there
    const why = (thrown as NodeJS.ErrnoException).code === "ENOENT" ? "" : `: ${systemProblem(thrown)}`;
    throw new OctavoError("invalid_option", `--${flag}: nothing can be written to ${nearest}${why}`, {
      param: flag,
      cause: thrown,
    });
  }
}

function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path));
}
