import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { packedFolder } from "../models/packed-folder.js";
import { checkServedAnswers } from "../answers/served-answers.js";
import { measureServer, measureShared, withServerProcess } from "./served.js";
import type { Contender, Job, MeasureContext, Measurement } from "./contender.js";
import { octavoServer } from "./octavo-server.js";
import { measureInWorker } from "./worker.js";

/** This engine, as a library in a process of its own, or behind its server. */
export const octavo: Contender = {
  name: "octavo",
  supports: () => true,
  async prepare(job: Job, context: MeasureContext): Promise<void> {
    if (job.kind === "server" && job.maxPrefillStepMs !== undefined) {
      const server = octavoServer(job, context);
      await withServerProcess(server, () => checkServedAnswers(server.baseUrl, job.inputTokens));
    }
    if (job.kind !== "first-token" || !job.keepsPacked) return;
    await measureInWorker("octavo-worker.js", job, context);
    await settle(packedFolder(context.model.path));
  },
  async measure(job: Job, context: MeasureContext): Promise<Measurement> {
    if (job.kind === "server") return await measureServer(octavoServer(job, context), job);
    if (job.kind === "shared-prefix" && job.through === "http") {
      return await measureShared(job, (load) => octavoServer(load, context));
    }
    return await measureInWorker("octavo-worker.js", job, context);
  },
};

/** Waits until a folder's files are on the disk, so that nobody is measured while they are written. */
async function settle(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const file = await open(join(folder, name));
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
