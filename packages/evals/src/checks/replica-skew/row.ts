import { checkRow } from "../check-run.js";
import { collectReplicaSkew } from "../collect/replica-skew.js";
import { shuffleReplicas } from "../support/placebos.js";
import { replicaSkewCheck } from "./check.js";
import { replicaSkewSettings } from "./settings.js";

export const replicaSkewRow = checkRow({
  check: replicaSkewCheck,
  settings: replicaSkewSettings,
  needs: ["replicas", "cases"],
  placebo: () => shuffleReplicas,
  sideOf: ({ replica, condition }) => replica ?? condition,
  collect: collectReplicaSkew,
  sequence: ({ sequential, lookEvery: every }) => (sequential ? { every, axisTags: [] } : undefined),
});
