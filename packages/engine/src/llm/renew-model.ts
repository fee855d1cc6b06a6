import type { Renewal } from "@octavo/kernels";
import type { ModelRenewal } from "../engine-options.js";
import { FileStates } from "./file-states.js";
import type { SleepingWeights } from "./model-sleep.js";

/** How the weights of a lost device come back: read anew from their files, which must not have changed. */
export function modelRenewal(renewal: Renewal, weights: readonly SleepingWeights[]): ModelRenewal {
  const files = new FileStates(weights.map(({ checkpoint }) => checkpoint));
  return {
    vacating: renewal,
    renew: async () => {
      for (const { loaded } of weights) await loaded.vacate(renewal);
      const name = await renewal.renew();
      for (const { loaded, checkpoint } of weights) {
        files.check(checkpoint, "since its model was loaded, and the GPU that held the weights was lost");
        await loaded.refill(renewal, checkpoint.tensors);
      }
      return name;
    },
  };
}
