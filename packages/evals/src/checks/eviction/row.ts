import { checkRow } from "../check-run.js";
import { collectEviction } from "../collect/eviction.js";
import { disturbNothing } from "../support/placebos.js";
import { evictionCheck } from "./check.js";
import { evictionSettings } from "./settings.js";

export const evictionRow = checkRow({
  check: evictionCheck,
  settings: evictionSettings,
  needs: ["cases"],
  placebo: ({ kept, keptAgain, evicted }) => disturbNothing(kept, keptAgain, evicted),
  collect: collectEviction,
});
