import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder and those above it. In place of Node's recursive `mkdir`, which never ends below a folder that refuses new ones with
 * ENOENT, as /proc does.
 */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, mode);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "EEXIST" && isFolder(path)) return;
    const above = dirname(path);
    if (code !== "ENOENT" || above === path || isFolder(above)) throw thrown;
    makeFolder(above, mode);
    mkdirSync(path, mode);
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
