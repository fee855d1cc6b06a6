import { checkRow } from "../check-run.js";
import { collectTrafficDrift } from "../collect/traffic-drift.js";
import { trafficDriftCheck } from "./check.js";
import { driftPlacebo } from "./placebo.js";
import { trafficDriftSettings } from "./settings.js";

export const trafficDriftRow = checkRow({
  check: trafficDriftCheck,
  settings: trafficDriftSettings,
  needs: ["cases"],
  placebo: driftPlacebo,
  collect: collectTrafficDrift,
});
