import { checkRow } from "../check-run.js";
import { collectTwoTenants } from "../collect/two-tenants.js";
import { swapConditions } from "../support/placebos.js";
import { fairnessCheck } from "./check.js";
import { fairnessSettings } from "./settings.js";

export const fairnessRow = checkRow({
  check: fairnessCheck,
  settings: fairnessSettings,
  needs: ["cases"],
  placebo: ({ solo, shared, smallTenant }) => {
    const swap = swapConditions(solo, shared);
    // what the large tenant saw is beside the point
    return (seen, random) =>
      swap(
        seen.filter(({ tenant }) => tenant === smallTenant),
        random,
      );
  },
  collect: (bed, settings) => collectTwoTenants(bed, bed.candidate, settings),
});
