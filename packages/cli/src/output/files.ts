import { readFile, writeFile } from "node:fs/promises";
import { OctavoError } from "@octavo/protocol/errors";

/** The text of a file that a flag names. Throws `invalid_option` that names both. */
export async function readTextOf(flag: string, path: string): Promise<string> {
  return readFile(path, "utf8").catch(failed(flag, path, "read"));
}

/** Writes what a flag asks for; `-` is standard output. Throws `invalid_option` that names flag and file. */
export async function writeTextOf(flag: string, path: string, text: string): Promise<void> {
  if (path === "-") process.stdout.write(text);
  else await writeFile(path, text).catch(failed(flag, path, "written"));
}

function failed(
  flag: string,
  path: string,
  done: "read" | "written",
): (cause: NodeJS.ErrnoException) => never {
  return (cause) => {
    const reason = cause.code ?? "unknown";
    throw new OctavoError("invalid_option", `--${flag}: ${path} cannot be ${done} (${reason})`, {
      param: flag,
      cause,
    });
  };
}
