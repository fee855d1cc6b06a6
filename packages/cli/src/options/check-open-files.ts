import { readFileSync } from "node:fs";

/** Files that a server has open beside its connections: the model, logs, workers, the libraries. */
const filesBeside = 128;

/**
 * A warning when the limit of open files (`ulimit -n`) is less than `connections`, one for each request that may run or wait, and
 * what a server has open beside: further connections would get no answer. Undefined where it is enough or not known.
 */
export function openFilesWarning(connections: number, limits = readLimits()): string | undefined {
  const soft = /^Max open files\s+(\d+)\s/m.exec(limits)?.[1];
  const needed = connections + filesBeside;
  if (soft === undefined || Number(soft) >= needed) return undefined;
  return `the limit of open files (nofile) is ${soft}, but ${connections} connections and the server's own files need ${needed}; raise it with ulimit -n ${needed}, or LimitNOFILE= of systemd`;
}

function readLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    return "";
  }
}
