import { availableParallelism } from "node:os";
import { controlGroupFolders, type ReadFile, readIfThere } from "./control-groups.js";

/**
 * Physical cores this process may use: the processors of its affinity mask (which follows cpusets), with hyperthreads of one
 * core counted once, under the CPU quota of its control groups. Kernels that keep a core's vector units busy gain nothing
 * from its second thread.
 */
export function defaultThreadCount(read: ReadFile = readIfThere): number {
  return Math.max(1, Math.min(coreCount(read), Math.floor(cpuQuota(read))));
}

/** Processors that this process may run on, hyperthreads counted. */
export function processorCount(read: ReadFile = readIfThere): number {
  return allowedProcessors(read)?.length ?? availableParallelism();
}

function coreCount(read: ReadFile): number {
  const allowed = allowedProcessors(read);
  if (allowed === undefined) return availableParallelism();
  const cores = new Set<string>();
  for (const id of allowed) {
    const siblings = read(`/sys/devices/system/cpu/cpu${id}/topology/thread_siblings_list`)?.trim();
    cores.add(siblings === undefined || siblings === "" ? `processor ${id}` : siblings);
  }
  return cores.size;
}

/** Processors of this process's affinity mask; undefined where the system does not say. */
export function allowedProcessors(read: ReadFile): number[] | undefined {
  const [, list = ""] = /^Cpus_allowed_list:\s*(\S+)/m.exec(read("/proc/self/status") ?? "") ?? [];
  const processors = processorList(list);
  return processors.length > 0 ? processors : undefined;
}

/** Linux's "0-3,8"; empty where it is none. */
export function processorList(text: string): number[] {
  const list = text.trim();
  const processors: number[] = [];
  if (!/^\d+(-\d+)?(,\d+(-\d+)?)*$/.test(list)) return processors;
  for (const range of list.split(",")) {
    const [first = 0, last = first] = range.split("-").map(Number);
    for (let id = first; id <= last && processors.length < 65_536; id++) processors.push(id);
  }
  return processors;
}

/** The smallest that holds, in processors; infinite when there is no limit. */
function cpuQuota(read: ReadFile): number {
  let smallest = Infinity;
  for (const folder of controlGroupFolders("cpu", read)) {
    const [quota = Number.NaN, period = Number.NaN] = (
      read(`${folder}/cpu.max`)?.trim().split(" ") ?? [
        read(`${folder}/cpu.cfs_quota_us`),
        read(`${folder}/cpu.cfs_period_us`),
      ]
    ).map(Number);
    if (quota > 0 && period > 0) smallest = Math.min(smallest, Math.max(1, quota / period));
  }
  return smallest;
}
