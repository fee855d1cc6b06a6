import { ClassifierModel, type DistilledClassifier, featureCount, packFloats } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { certifyThreshold, type CertifiedCase, decisionsFor } from "./certify-threshold.js";
import { type LabelledVector, standardise, trainNetwork } from "./network.js";
import { plattScaling } from "./platt.js";

/** A case's embedding with the judge's verdict. */
export interface JudgedVector {
  readonly caseId: string;
  readonly vector: readonly number[];
  readonly passed: boolean;
  /** Cases of one cluster stay in one part. */
  readonly cluster: string | undefined;
}

/** What a classifier imitates, and how surely it must agree. */
export interface DistilOptions {
  readonly imitates: string;
  readonly embeddings: DistilledClassifier["embeddings"];
  readonly inputs: DistilledClassifier["inputs"];
  /** Vectors have the differences of the inputs' embeddings too. Default false. */
  readonly differences?: boolean;
  /** Share of its decisions that the judge must share. Default 0.98. */
  readonly agreement?: number;
  /** Probability that it does. Default 0.95. */
  readonly confidence?: number;
  readonly seed?: number;
}

/** A classifier and what it is known to reach on cases it was not fitted to. */
export interface Distilled {
  /** Undefined where no threshold could be certified. */
  readonly classifier: DistilledClassifier | undefined;
  readonly kind: "logistic" | "mlp";
  readonly numTraining: number;
  readonly numCertified: number;
  /** Share of the certification cases that it decides: judge calls that are saved. */
  readonly saved: number;
  /** Agreement with the judge, were it to decide all. */
  readonly agreementOfAll: number;
  readonly reason: string | undefined;
}

/** Fewest examples of each label to learn from. */
const fewestOfLabel = 10;
const fewestCases = 60;
const shares = { training: 0.45, choosing: 0.15 };
const hiddenUnits = 16;
/** Files of more weights would be large. */
const mostMlpInputs = 8192;

/**
 * A classifier that imitates a judge: logistic regression or a small network, whichever imitates better on cases kept apart, made
 * probabilities by Platt scaling there, and a threshold certified on a third part that nothing was chosen by.
 * @throws OctavoError `dataset_invalid` for verdicts of one label, too few of them, or embeddings of different dimensions
 */
export function distilJudge(rows: readonly JudgedVector[], options: DistilOptions): Distilled {
  const { agreement = 0.98, confidence = 0.95, seed = 1 } = options;
  refuseUnlearnable(rows, options);
  const { training, choosing, certifying } = divide(rows, seed);
  const { mean, scale } = standardise(training.map(({ vector }) => vector));
  const prepared = training.map(({ vector, passed }): LabelledVector => ({
    vector: Float64Array.from(vector, (value, at) => (value - mean[at]!) * scale[at]!),
    label: passed,
  }));
  const width = mean.length;
  const tried = [0, ...(width <= mostMlpInputs ? [hiddenUnits] : [])].flatMap((hidden) =>
    [1e-4, 1e-2].map((l2) => {
      const layers = trainNetwork(prepared, { hidden, l2, epochs: hidden === 0 ? 60 : 40, seed });
      const packed = {
        mean: packFloats(mean),
        scale: packFloats(scale),
        layers: layers.map(({ weights, bias }) => ({ weights: packFloats(weights), bias: packFloats(bias) })),
      };
      const bare = new ClassifierModel({ ...packed, calibration: { slope: 1, intercept: 0 } });
      const calibration = plattScaling(
        choosing.map(({ vector, passed }) => ({ logit: bare.logit(vector), label: passed })),
      );
      const model = new ClassifierModel({ ...packed, calibration });
      const loss = choosing.reduce((sum, { vector, passed }) => {
        const p = model.passProbability(vector);
        return sum - Math.log(Math.max(1e-9, passed ? p : 1 - p));
      }, 0);
      return { hidden, packed, calibration, model, loss };
    }),
  );
  const best = tried.reduce((one, other) => (other.loss < one.loss ? other : one));
  const cases = certifying.map(({ vector, passed }): CertifiedCase => {
    const p = best.model.passProbability(vector);
    return { certainty: Math.max(p, 1 - p), agrees: p >= 0.5 === passed };
  });
  const reference = choosing.map(({ vector }) => {
    const p = best.model.passProbability(vector);
    return Math.max(p, 1 - p);
  });
  const certified = certifyThreshold(cases, reference, { agreement, confidence });
  const shared = {
    kind: best.hidden === 0 ? ("logistic" as const) : ("mlp" as const),
    numTraining: training.length + choosing.length,
    numCertified: cases.length,
    agreementOfAll: cases.filter(({ agrees }) => agrees).length / cases.length,
  };
  if (certified === undefined) {
    const needed = decisionsFor(agreement, confidence);
    const reason =
      cases.length < needed
        ? `${cases.length} cases are left to certify it on, and ${needed} decisions are needed for ${100 * agreement} %: judge about ${Math.ceil(needed / (1 - shares.training - shares.choosing))} cases`
        : `its surest decisions do not reach ${100 * agreement} % agreement: other embeddings, more cases, or a judge that is easier to imitate are needed`;
    return { ...shared, classifier: undefined, saved: 0, reason };
  }
  return {
    ...shared,
    saved: certified.numDecided / cases.length,
    reason: undefined,
    classifier: {
      imitates: options.imitates,
      embeddings: options.embeddings,
      inputs: options.inputs,
      differences: options.differences ?? false,
      ...best.packed,
      calibration: best.calibration,
      certainty: Math.max(0.5, certified.certainty),
      guarantee: {
        agreement,
        confidence,
        lower_bound: certified.lowerBound,
        decided: certified.numDecided,
        agreed: certified.numAgreed,
        certified_on: cases.length,
      },
    },
  };
}

function refuseUnlearnable(rows: readonly JudgedVector[], shape: DistilOptions): void {
  const refuse = (message: string): never => {
    throw new OctavoError("dataset_invalid", message);
  };
  if (rows.length < fewestCases)
    refuse(`${rows.length} judged cases; at least ${fewestCases} are needed to learn from`);
  const numPassed = rows.filter(({ passed }) => passed).length;
  const numFailed = rows.length - numPassed;
  if (numPassed === 0 || numFailed === 0)
    refuse(
      `the judge ${numPassed === 0 ? "failed" : "passed"} all ${rows.length} cases: there is nothing to learn; add cases that ${numPassed === 0 ? "pass" : "fail"}`,
    );
  if (Math.min(numPassed, numFailed) < fewestOfLabel)
    refuse(
      `${Math.min(numPassed, numFailed)} of ${rows.length} cases ${numPassed < numFailed ? "pass" : "fail"}; at least ${fewestOfLabel} of each verdict are needed`,
    );
  const width = featureCount(shape);
  for (const { caseId, vector } of rows) {
    if (vector.length !== width)
      refuse(
        `the embedding of ${caseId} has ${vector.length} numbers, others have ${width}: they are of different models`,
      );
    if (!vector.every(Number.isFinite)) refuse(`the embedding of ${caseId} holds what is no number`);
  }
}

/** Clusters at random to training, choosing and certification. */
function divide(rows: readonly JudgedVector[], seed: number) {
  const clusters = new Map<string, JudgedVector[]>();
  for (const [index, row] of rows.entries()) {
    const key = row.cluster === undefined ? `case ${index}` : `cluster ${row.cluster}`;
    clusters.set(key, [...(clusters.get(key) ?? []), row]);
  }
  const parts = {
    training: [] as JudgedVector[],
    choosing: [] as JudgedVector[],
    certifying: [] as JudgedVector[],
  };
  let placed = 0;
  for (const cluster of new Random(seed).shuffle([...clusters.values()])) {
    const share = placed / rows.length;
    placed += cluster.length;
    if (share < shares.training) parts.training.push(...cluster);
    else if (share < shares.training + shares.choosing) parts.choosing.push(...cluster);
    // certified are cases that are independent: one of each cluster
    else parts.certifying.push(cluster[0]!);
  }
  return parts;
}
