import type { ChildProcess } from "node:child_process";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const children = new Set<ChildProcess>();

/** A child that ends with this process, by whatever end but SIGKILL. */
export function endWithProcess(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (children.size === 0) {
    process.on("exit", killAll);
    // before others, so that `once` listeners are still counted
    for (const signal of signals) process.prependListener(signal, onSignal);
  }
  children.add(child);
  child.once("exit", () => {
    children.delete(child);
    if (children.size === 0) stopListening();
  });
}

function onSignal(signal: NodeJS.Signals): void {
  // another listener shuts the process down in order, and the children with it
  if (process.listenerCount(signal) > 1) return;
  killAll();
  stopListening();
  process.kill(process.pid, signal);
}

function killAll(): void {
  for (const child of children) child.kill("SIGKILL");
}

function stopListening(): void {
  process.removeListener("exit", killAll);
  for (const signal of signals) process.removeListener(signal, onSignal);
}
