import { checkRow } from "../check-run.js";
import { collectEviction } from "../collect/eviction.js";
import { disturbNothing } from "../support/placebos.js";
import { evictionCheck } from "./check.js";
import { evictionSettings } from "./settings.js";

const { kept, keptAgain, evicted } = evictionCheck.defaults;

export const evictionRow = checkRow({
  check: evictionCheck,
  settings: evictionSettings,
  needs: ["cases"],
  placebo: disturbNothing(kept, keptAgain, evicted),
  collect: collectEviction,
});
