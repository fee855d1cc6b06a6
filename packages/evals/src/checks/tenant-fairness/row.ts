import { checkRow } from "../check-run.js";
import { LeastQueueRouter } from "../collect/least-queue-router.js";
import { collectTwoTenants } from "../collect/two-tenants.js";
import { swapSmallTenant } from "../support/placebos.js";
import { tenantFairnessCheck } from "./check.js";
import { tenantFairnessSettings } from "./settings.js";

export const tenantFairnessRow = checkRow({
  check: tenantFairnessCheck,
  settings: tenantFairnessSettings,
  needs: ["cases"],
  placebo: swapSmallTenant,
  // a cluster that has a router of its own is the candidate; replicas that have none get one
  collect: (bed, settings) =>
    collectTwoTenants(
      bed,
      bed.replicas.length > 1 ? new LeastQueueRouter("deployment", bed.replicas) : bed.candidate,
      settings,
    ),
});
