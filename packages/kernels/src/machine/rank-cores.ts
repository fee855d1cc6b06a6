import { type ReadFile, readIfThere } from "./control-groups.js";
import { allowedProcessors, processorList } from "./default-thread-count.js";

/**
 * Processors for each of `count` ranks: neighbours, so that a rank lies within a memory node where that can be. None, which leaves
 * placing to the system, where a rank would have fewer than `numThreads`.
 */
export function rankCores(count: number, numThreads: number, read: ReadFile = readIfThere): number[][] {
  const allowed = allowedProcessors(read) ?? [];
  const nodeOf = nodesOfProcessors(read);
  const sorted = allowed.toSorted((a, b) => (nodeOf.get(a) ?? 0) - (nodeOf.get(b) ?? 0) || a - b);
  const share = Math.floor(sorted.length / count);
  return Array.from({ length: count }, (_, rank) =>
    share < numThreads ? [] : sorted.slice(rank * share, (rank + 1) * share),
  );
}

/** Linux's list of memory nodes; empty elsewhere, which is one node for all. */
function nodesOfProcessors(read: ReadFile): Map<number, number> {
  const nodes = new Map<number, number>();
  for (const node of processorList(read("/sys/devices/system/node/online") ?? "")) {
    for (const id of processorList(read(`/sys/devices/system/node/node${node}/cpulist`) ?? ""))
      nodes.set(id, node);
  }
  return nodes;
}
