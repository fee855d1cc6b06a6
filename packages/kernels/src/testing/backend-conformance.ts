import { describe } from "node:test";
import type { Backend } from "../backend.js";
import { adapterConformance } from "./conformance/adapters.js";
import { attentionConformance } from "./conformance/attention.js";
import { determinismConformance } from "./conformance/determinism.js";
import { digestsConformance } from "./conformance/digests.js";
import { draftsConformance } from "./conformance/drafts.js";
import { expertsConformance } from "./conformance/experts.js";
import { givenRowsConformance } from "./conformance/given-rows.js";
import { latentConformance } from "./conformance/latent.js";
import { logprobsConformance } from "./conformance/logprobs.js";
import { opTimesConformance } from "./conformance/op-times.js";
import { recurrentConformance } from "./conformance/recurrent.js";
import { ropeConformance } from "./conformance/rope.js";
import { rowOpsConformance } from "./conformance/row-ops.js";
import { samplerStateConformance } from "./conformance/sampler-state.js";
import { samplingConformance } from "./conformance/sampling.js";
import { misuseConformance } from "./conformance/misuse.js";
import { wholeSequencesConformance } from "./conformance/whole-sequences.js";

export interface ConformanceOptions {
  /** Fewer draws of each sampling filter, for backends whose steps are slow where they are tested. */
  readonly numDraws?: number;
  /** Fewer and shorter sequences and steps where schedules or penalties are compared, and a third of the shapes of attention. */
  readonly hasFewSteps?: boolean;
  /** Absent for backends that take no given rows. */
  readonly takesGiven?: boolean;
}

/** What every backend must do. `open` makes one with so many threads, if it has threads at all. */
export function backendConformance(
  name: string,
  open: (numThreads: number) => Backend,
  { numDraws, hasFewSteps, takesGiven }: ConformanceOptions = {},
): void {
  describe(`${name} backend`, () => {
    rowOpsConformance(() => open(2));
    ropeConformance(() => open(2));
    expertsConformance(() => open(2));
    attentionConformance(() => open(2), hasFewSteps);
    latentConformance(open, hasFewSteps);
    determinismConformance(open, hasFewSteps);
    recurrentConformance(open);
    adapterConformance(open);
    samplingConformance(() => open(2), numDraws);
    samplerStateConformance(() => open(2), hasFewSteps);
    draftsConformance(() => open(2));
    logprobsConformance(() => open(2));
    digestsConformance(() => open(2));
    wholeSequencesConformance(() => open(2), hasFewSteps);
    opTimesConformance(() => open(2));
    if (takesGiven === true) givenRowsConformance(() => open(2));
    misuseConformance(() => open(1));
  });
}
