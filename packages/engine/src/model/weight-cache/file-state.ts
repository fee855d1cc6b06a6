import { readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";

/** A file as it is from one write to the next, while the machine runs. */
export interface FileState {
  /** Differs from that of every other state. */
  readonly text: string;
  readonly changedNs: bigint;
}

export const markSuffix = ".used";
/** Clocks of file systems tick every few milliseconds: what was written within a tick cannot be told apart. */
export const tickMs = 20;
const tickNs = BigInt(tickMs) * 1_000_000n;
const secondNs = 1_000_000_000n;
const bootIdPath = "/proc/sys/kernel/random/boot_id";

/** Undefined where the system does not tell one of its starts from another, or the file is not there. */
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
 * Whether `leaveMark` said of this state that its bytes are sound. No write since then, none by others and none that a power failure
 * cut short: the time of change moves with every write and cannot be set back.
 */
export function isKnownSound(path: string, { text, changedNs }: FileState): boolean {
  // A file system that counts whole seconds says too little.
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

/** Notes beside a file that it was used now, and the state in which its bytes were found sound. Never fails. */
export async function leaveMark(path: string, state: FileState | undefined): Promise<void> {
  await writeFile(path + markSuffix, state?.text ?? "").catch(() => undefined);
}
