import { checkRow } from "../check-run.js";
import { collectTail } from "../collect/tail.js";
import { shufflePlaces } from "../support/placebos.js";
import { tailCheck } from "./check.js";
import { tailSettings } from "./settings.js";

export const tailRow = checkRow({
  check: tailCheck,
  settings: tailSettings,
  needs: ["cases"],
  placebo: () => shufflePlaces,
  collect: collectTail,
});
