import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type LockOwner, mayBeAlive, parseLockOwner, thisProcess } from "@octavo/artifacts/hub/lock-owner";
import type { OctavoError } from "@octavo/protocol";
import { invalidOption } from "../options.js";

/**
 * A lock file that keeps a folder to one run. The lock of a process that has ended is taken over; that of a process on another machine,
 * which cannot be checked, is not.
 */
export class RunLock implements Disposable {
  readonly #path: string;
  #isHeld = true;

  private constructor(path: string) {
    this.#path = path;
  }

  /** @throws OctavoError `invalid_option` (out) while another run holds it */
  static take(path: string): RunLock {
    const text = JSON.stringify(thisProcess());
    if (create(path, text)) return new RunLock(path);
    const found = readText(path);
    const holder = found === undefined ? undefined : parseLockOwner(found);
    if (holder !== undefined && mayBeAlive(holder)) throw refusal(path, holder);
    if (found !== undefined && !remove(path, found)) throw refusal(path, holder);
    if (!create(path, text)) throw refusal(path, parseLockOwner(readText(path) ?? ""));
    return new RunLock(path);
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    rmSync(this.#path, { force: true });
  }
}

/** False where the file is there already. */
function create(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Removes what was found, and nothing that another run has put in its place since. */
function remove(path: string, found: string): boolean {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
  const isSame = readText(aside) === found;
  if (!isSame) linkSync(aside, path);
  rmSync(aside, { force: true });
  return isSame;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function refusal(path: string, holder: LockOwner | undefined): OctavoError {
  const who = holder === undefined ? "another process" : `process ${holder.pid} on ${holder.host}`;
  return invalidOption(
    "out",
    `is being written by ${who}; wait for it, or name another folder (if it no longer runs, remove ${path})`,
  );
}
