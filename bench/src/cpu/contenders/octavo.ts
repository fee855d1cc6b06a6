import { measureServer } from "./served.js";
import type { Contender, Job, MeasureContext, Measurement } from "./contender.js";
import { octavoServer } from "./octavo-server.js";
import { measureInWorker } from "./worker.js";

/** This engine, as a library in a process of its own, or behind its server. */
export const octavo: Contender = {
  name: "octavo",
  supports: () => true,
  async measure(job: Job, context: MeasureContext): Promise<Measurement> {
    if (job.kind === "server") return await measureServer(octavoServer(job, context), job);
    return await measureInWorker("octavo-worker.js", job, context);
  },
};
