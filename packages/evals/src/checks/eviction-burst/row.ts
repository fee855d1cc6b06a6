import { checkRow } from "../check-run.js";
import { collectEvictionBurst } from "../collect/eviction-burst.js";
import { disturbNothing } from "../support/placebos.js";
import { evictionBurstCheck } from "./check.js";
import { evictionBurstSettings } from "./settings.js";

const { quiet, quietAgain, burst } = evictionBurstCheck.defaults;

export const evictionBurstRow = checkRow({
  check: evictionBurstCheck,
  settings: evictionBurstSettings,
  needs: ["cases"],
  placebo: disturbNothing(quiet, quietAgain, burst),
  collect: collectEvictionBurst,
});
