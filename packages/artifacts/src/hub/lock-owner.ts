import { readFileSync } from "node:fs";
import { hostname } from "node:os";

/** The process that holds a lock file. */
export interface LockOwner {
  readonly pid: number;
  readonly host: string;
  /** Clock ticks from the machine's start to the process's, by which a later process of the same number differs; null without /proc. */
  readonly startTicks: number | null;
}

export function thisProcess(): LockOwner {
  return { pid: process.pid, host: hostname(), startTicks: startTicksOf(process.pid) };
}

/** Undefined for what is no record of an owner: a crash may have cut it off. */
export function parseLockOwner(text: string): LockOwner | undefined {
  try {
    const { pid, host, startTicks } = JSON.parse(text) as Partial<LockOwner>;
    if (!Number.isSafeInteger(pid) || typeof host !== "string") return undefined;
    return { pid: Number(pid), host, startTicks: typeof startTicks === "number" ? startTicks : null };
  } catch {
    return undefined;
  }
}

/** True for processes of other machines, which cannot be asked. */
export function mayBeAlive({ pid, host, startTicks }: LockOwner): boolean {
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
