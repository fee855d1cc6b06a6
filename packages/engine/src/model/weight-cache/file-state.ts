import { readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";

/** Identifies a file's state between two writes, within one boot of the machine. */
export interface FileState {
  /** Unique to the state. */
  readonly text: string;
  readonly changedNs: bigint;
}

export const markSuffix = ".used";
/** File system clocks tick every few milliseconds: two writes within a tick have the same time. */
export const tickMs = 20;
const tickNs = BigInt(tickMs) * 1_000_000n;
const secondNs = 1_000_000_000n;
const bootIdPath = "/proc/sys/kernel/random/boot_id";

/** Undefined if the system has no boot id or the file does not exist. */
export function stateOf(path: string): FileState | undefined {
  try {
    const bootId = readFileSync(bootIdPath, "latin1");
    const { dev, ino, size, ctimeNs } = statSync(path, { bigint: true });
    return { text: [bootId.trim(), dev, ino, size, ctimeNs].join(" "), changedNs: ctimeNs };
  } catch {
    return undefined;
  }
}

/**
 * Whether `leaveMark` recorded that the bytes of this state are sound. Neither a later write nor one cut short by a power failure
 * can go unnoticed: the change time moves with every write and cannot be set back.
 */
export function isKnownSound(path: string, { text, changedNs }: FileState): boolean {
  // A file system with whole seconds is too coarse.
  if (changedNs % secondNs === 0n) return false;
  try {
    const mark = path + markSuffix;
    return (
      readFileSync(mark, "latin1") === text && statSync(mark, { bigint: true }).mtimeNs - changedNs > tickNs
    );
  } catch {
    return false;
  }
}

/** Records beside a file that it was used now, and the state in which its bytes were verified. Never fails. */
export async function leaveMark(path: string, state: FileState | undefined): Promise<void> {
  await writeFile(path + markSuffix, state?.text ?? "").catch(() => undefined);
}
