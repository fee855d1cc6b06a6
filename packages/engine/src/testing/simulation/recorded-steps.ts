import type { RecordedSteps } from "./step-costs.js";

/** What steps of octavo-mini cost on one thread of the engine: `npm run bench -- fairness --record`. */
export const octavoMiniSteps: RecordedSteps = {
  name: "octavo-mini",
  processor: "AMD EPYC",
  promptTokens: [0, 32, 64, 128, 256, 512],
  decodes: [0, 1, 2, 4, 8, 16, 32],
  ms: [
    [1.066, 0.195, 0.208, 0.291, 0.401, 0.96, 1.866],
    [1.549, 1.012, 1.053, 1.115, 1.303, 2.058, 2.926],
    [2.032, 1.813, 1.858, 2.034, 2.161, 3.081, 3.888],
    [3.753, 3.559, 3.737, 3.747, 4.242, 4.843, 5.49],
    [7.566, 7.537, 7.664, 8.047, 8.023, 8.899, 9.697],
    [16.97, 16.89, 17.34, 17.84, 17.84, 18.36, 19.14],
  ],
};
