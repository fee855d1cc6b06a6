import { checkRow } from "../check-run.js";
import { collectJitter } from "../collect/jitter.js";
import { jitterCheck } from "./check.js";
import { quietPlacebo } from "./placebo.js";
import { jitterSettings } from "./settings.js";

export const jitterRow = checkRow({
  check: jitterCheck,
  settings: jitterSettings,
  needs: ["cases"],
  placebo: quietPlacebo,
  collect: collectJitter,
});
