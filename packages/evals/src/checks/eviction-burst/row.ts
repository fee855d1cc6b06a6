import { checkRow } from "../check-run.js";
import { collectEvictionBurst } from "../collect/eviction-burst.js";
import { disturbNothing } from "../support/placebos.js";
import { evictionBurstCheck } from "./check.js";
import { evictionBurstSettings } from "./settings.js";

export const evictionBurstRow = checkRow({
  check: evictionBurstCheck,
  settings: evictionBurstSettings,
  needs: ["cases"],
  placebo: ({ quiet, quietAgain, burst }) => disturbNothing(quiet, quietAgain, burst),
  collect: collectEvictionBurst,
});
