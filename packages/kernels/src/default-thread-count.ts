import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/**
 * Physical cores this process may use: the processors of its affinity mask, with hyperthreads of one core counted once,
 * under the CPU quota of its cgroup. Kernels that keep a core's vector units busy gain nothing from its second thread.
 */
export function defaultThreadCount(read: (path: string) => string | undefined = readIfThere): number {
  const cores = Math.ceil(availableParallelism() / threadsPerCore(read));
  return Math.max(1, Math.min(cores, Math.floor(cpuQuota(read))));
}

function threadsPerCore(read: (path: string) => string | undefined): number {
  const siblings = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
  if (siblings === undefined) return 1;
  const count = siblings
    .trim()
    .split(",")
    .map((range) => range.split("-").map(Number))
    .reduce((sum, [first = 0, last = first]) => sum + last - first + 1, 0);
  return Number.isInteger(count) && count >= 1 ? count : 1;
}

/** In processors; infinite when there is no limit. */
function cpuQuota(read: (path: string) => string | undefined): number {
  const unified = read("/sys/fs/cgroup/cpu.max")?.trim().split(" ").map(Number);
  const [quota = Number.NaN, period = Number.NaN] = unified ?? [
    Number(read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") ?? Number.NaN),
    Number(read("/sys/fs/cgroup/cpu/cpu.cfs_period_us") ?? Number.NaN),
  ];
  return quota > 0 && period > 0 ? Math.max(1, quota / period) : Infinity;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
