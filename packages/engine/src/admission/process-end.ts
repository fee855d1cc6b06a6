import { readFileSync } from "node:fs";

/** What tells a later process how this one ended, by `wasKilledForMemory`. */
export interface ProcessMark {
  /** Identifies the machine's current boot; null without /proc. */
  readonly bootId: string | null;
  /** Processes that the kernel has killed for memory since the boot. */
  readonly memoryKills: number | null;
}

export function currentMark(): ProcessMark {
  const kills = /^oom_kill (\d+)$/m.exec(textAt("/proc/vmstat") ?? "")?.[1];
  return {
    bootId: textAt("/proc/sys/kernel/random/boot_id")?.trim() ?? null,
    memoryKills: kills === undefined ? null : Number(kills),
  };
}

/**
 * Whether a process that left this mark may have ended by what it computed, though it left no word of a fault: since then the kernel
 * has killed a process for memory, in the same run of the machine. Loss of power, a restarted machine and `kill -9` leave no sign.
 */
export function wasKilledForMemory(mark: ProcessMark, now: ProcessMark = currentMark()): boolean {
  if (mark.bootId === null || mark.bootId !== now.bootId) return false;
  return mark.memoryKills !== null && now.memoryKills !== null && now.memoryKills > mark.memoryKills;
}

function textAt(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}
