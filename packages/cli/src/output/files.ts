import { existsSync, rmSync, statSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { checkFolder } from "../options/check-folder.js";

/** The text of a file that a flag names. Throws `invalid_option` that names both. */
export async function readTextOf(flag: string, path: string): Promise<string> {
  return readFile(path, "utf8").catch(failed(flag, path, "read"));
}

/** Throws `invalid_option` where files that flags name could not be written once the work is done; `-` is standard output. */
export function checkOutputs(files: Readonly<Record<string, string | undefined>>): void {
  for (const [flag, path] of Object.entries(files)) {
    if (path === undefined || path === "-") continue;
    if (!existsSync(path)) checkFolder(flag, dirname(path));
    else if (statSync(path).isDirectory())
      throw new OctavoError("invalid_option", `--${flag}: ${path} is a folder; name a file`, { param: flag });
  }
}

/** Writes what a flag asks for; `-` is standard output. Throws `invalid_option` that names flag and file, and leaves no part of a new one. */
export async function writeTextOf(flag: string, path: string, text: string): Promise<void> {
  if (path === "-") {
    process.stdout.write(text);
    return;
  }
  const isNew = !existsSync(path);
  await writeFile(path, text).catch((cause: NodeJS.ErrnoException) => {
    if (isNew) rmSync(path, { force: true });
    return failed(flag, path, "written")(cause);
  });
}

function failed(
  flag: string,
  path: string,
  done: "read" | "written",
): (cause: NodeJS.ErrnoException) => never {
  return (cause) => {
    throw new OctavoError("invalid_option", `--${flag}: ${path} cannot be ${done}: ${systemProblem(cause)}`, {
      param: flag,
      cause,
    });
  };
}
