import { OctavoError } from "@octavo/protocol";
import { bayesianSearch } from "./bayesian.js";
import { gepa } from "./gepa.js";
import { metaPrompt } from "./meta-prompt.js";
import type { Optimizer } from "./optimizer.js";
import { promptWizard } from "./promptwizard.js";
import { protegi } from "./protegi.js";
import { randomSearch } from "./random-search.js";

/** Every optimiser. */
export const optimizers: readonly Optimizer[] = [
  gepa,
  protegi,
  promptWizard,
  metaPrompt,
  bayesianSearch,
  randomSearch,
];

/** @throws OctavoError `invalid_option` for a name that is none */
export function optimizerNamed(name: string): Optimizer {
  const found = optimizers.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw new OctavoError(
    "invalid_option",
    `there is no optimizer ${JSON.stringify(name.slice(0, 64))}: choose one of ${optimizers.map((one) => one.name).join(", ")}`,
    { param: "optimizer" },
  );
}
