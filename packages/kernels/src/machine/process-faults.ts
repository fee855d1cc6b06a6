import { loadAddon } from "../cpu/load-addon.js";

/**
 * While on, a signal raised by a fault of this process (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP) appends the line
 * `fault NAME` to an open file before the process ends, and `survived NAME` if a handler of another owner took care of it. A mapped
 * file that was truncated is no fault. False when too many files are recorded to. Throws `native_unavailable`.
 */
export function recordFaults(descriptor: number, on: boolean): boolean {
  return loadAddon().recordFaults(descriptor, on);
}

/**
 * Locks an open file against every other opening of it on this machine, until it is closed or the process ends, however it ends.
 * False when another has it. Throws `native_unavailable`.
 */
export function lockFile(descriptor: number): boolean {
  return loadAddon().lockFile(descriptor);
}
