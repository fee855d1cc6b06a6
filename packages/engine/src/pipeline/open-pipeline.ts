import type { Backend } from "@octavo/kernels";
import type { LoadedModel } from "../model/load-model.js";
import type { StageLoad } from "./messages.js";
import { type EarlierStages, openStages } from "./open-stages.js";
import type { RemoteStages } from "./stage-addresses.js";
import { stagedBackend } from "./staged-backend.js";

export interface PipelineStages extends EarlierStages {
  /** The backend that runs all stages, of which `last` has loaded the last. */
  readonly behind: (last: Backend, loaded: LoadedModel) => Backend;
}

/** Starts `count` stages but the last, which is the caller's, or finds those that run elsewhere. Rejects with `engine_failed` where one does not start. */
export async function openPipeline(
  load: Omit<StageLoad, "stage">,
  count: number,
  remote?: RemoteStages,
): Promise<PipelineStages> {
  const stages = await openStages(load, count, remote);
  return { ...stages, behind: (last, loaded) => stagedBackend(last, stages.clients, loaded) };
}
