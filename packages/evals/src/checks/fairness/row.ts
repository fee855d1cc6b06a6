import { checkRow } from "../check-run.js";
import { collectTwoTenants } from "../collect/two-tenants.js";
import { swapSmallTenant } from "../support/placebos.js";
import { fairnessCheck } from "./check.js";
import { fairnessSettings } from "./settings.js";

export const fairnessRow = checkRow({
  check: fairnessCheck,
  settings: fairnessSettings,
  needs: ["cases"],
  placebo: swapSmallTenant,
  collect: (bed, settings) => collectTwoTenants(bed, bed.candidate, settings),
});
