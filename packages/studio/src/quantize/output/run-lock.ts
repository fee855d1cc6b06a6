import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import type { OctavoError } from "@octavo/protocol";
import { invalidOption } from "../options.js";

/** Who holds a lock: a process of a machine, told from later ones of the same number by when it began. */
interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Clock ticks from the machine's start to the process's; null where there is no /proc. */
  readonly startTicks: number | null;
}

/**
 * A file that says which run works in a folder. That of a process which has ended, killed or crashed, is taken over; that of another
 * machine, whose processes cannot be asked, is not.
 */
export class RunLock implements Disposable {
  readonly #path: string;
  #isHeld = true;

  private constructor(path: string) {
    this.#path = path;
  }

  /** @throws OctavoError `invalid_option` (out) while another run holds it */
  static take(path: string): RunLock {
    const own: Holder = { pid: process.pid, host: hostname(), startTicks: startTicksOf(process.pid) };
    const text = JSON.stringify(own);
    if (create(path, text)) return new RunLock(path);
    const found = readText(path);
    const holder = found === undefined ? undefined : parseHolder(found);
    if (holder !== undefined && isAlive(holder)) throw refusal(path, holder);
    if (found !== undefined && !remove(path, found)) throw refusal(path, holder);
    if (!create(path, text)) throw refusal(path, parseHolder(readText(path) ?? ""));
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

/** Undefined for what is no record of a holder: a crash may have cut it off. */
function parseHolder(text: string): Holder | undefined {
  try {
    const { pid, host, startTicks } = JSON.parse(text) as Partial<Holder>;
    if (!Number.isSafeInteger(pid) || typeof host !== "string") return undefined;
    return { pid: Number(pid), host, startTicks: typeof startTicks === "number" ? startTicks : null };
  } catch {
    return undefined;
  }
}

function isAlive({ pid, host, startTicks }: Holder): boolean {
  if (host !== hostname()) return true;
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  const now = startTicksOf(pid);
  return startTicks === null || now === null || now === startTicks;
}

/** The 22nd field of /proc/PID/stat; the second, a name in parentheses, may hold anything. */
function startTicksOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const ticks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
    return Number.isSafeInteger(ticks) ? ticks : null;
  } catch {
    return null;
  }
}

function refusal(path: string, holder: Holder | undefined): OctavoError {
  const who = holder === undefined ? "another process" : `process ${holder.pid} on ${holder.host}`;
  return invalidOption(
    "out",
    `is being written by ${who}; wait for it, or name another folder (if it no longer runs, remove ${path})`,
  );
}
