import { Worker } from "node:worker_threads";

/** Run as text, so that it starts while the event loop of the process is stuck. */
const watch = `
  const { writeSync } = require("node:fs");
  const { workerData } = require("node:worker_threads");
  setTimeout(() => {
    writeSync(2, "octavo: the shutdown did not finish in time; the process ends now\\n");
    process.kill(process.pid, "SIGKILL");
  }, workerData);
`;

/**
 * Ends the process with SIGKILL after `afterMs`, whatever its event loop and its other threads do then. Does not keep the
 * process alive.
 */
export function endProcessAfter(afterMs: number): void {
  new Worker(watch, { eval: true, workerData: afterMs, execArgv: [], env: {} }).unref();
}
