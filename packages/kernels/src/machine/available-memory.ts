import { freemem } from "node:os";
import { controlGroupFolders, type ReadFile, readIfThere } from "./control-groups.js";

/**
 * Bytes that can still be used without swapping or being killed: the machine's, and no more than what is left under the limits
 * of this process's control groups. Cached file pages that the system can drop do not count as used: reading a model's file
 * fills a container with them.
 */
export function availableMemoryBytes(read: ReadFile = readIfThere): number {
  let available = machineBytes(read);
  for (const folder of controlGroupFolders("memory", read)) {
    available = Math.min(available, groupBytes(folder, read));
  }
  return available;
}

function machineBytes(read: ReadFile): number {
  const [, kibibytes] = /^MemAvailable:\s*(\d+) kB/m.exec(read("/proc/meminfo") ?? "") ?? [];
  return kibibytes === undefined ? process.availableMemory() || freemem() : Number(kibibytes) * 1024;
}

/** Infinite where the group sets no limit. Version 1 writes "no limit" as a number beyond any machine's memory. */
function groupBytes(folder: string, read: ReadFile): number {
  const limits = ["memory.max", "memory.high", "memory.limit_in_bytes"].map((name) =>
    numberIn(read(`${folder}/${name}`)),
  );
  const limit = Math.min(...limits.map((bytes) => (Number.isNaN(bytes) ? Infinity : bytes)));
  if (!(limit < Number.MAX_SAFE_INTEGER)) return Infinity;
  const used = numberIn(read(`${folder}/memory.current`) ?? read(`${folder}/memory.usage_in_bytes`));
  const stat = read(`${folder}/memory.stat`) ?? "";
  // Version 1 adds up the groups below under a name of its own.
  const [, dropped = 0] =
    /^total_inactive_file (\d+)$/m.exec(stat) ?? /^inactive_file (\d+)$/m.exec(stat) ?? [];
  return Math.max(0, limit - Math.max(0, (used || 0) - Number(dropped)));
}

function numberIn(text: string | undefined): number {
  return text === undefined || text.trim() === "" ? Number.NaN : Number(text);
}
