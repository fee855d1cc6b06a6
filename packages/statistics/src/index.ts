export type { Alternative, Estimate, Interval } from "./estimate.js";
export { Random } from "./random.js";
export { mean, midranks, variance } from "./sample.js";

export { betaCdf, betaQuantile, regularizedIncompleteBeta } from "./distributions/beta.js";
export {
  binomialCdf,
  binomialPmf,
  binomialQuantile,
  binomialTail,
  lnChoose,
} from "./distributions/binomial.js";
export { chiSquareCdf, chiSquareQuantile } from "./distributions/chi-square.js";
export { lnGamma, regularizedIncompleteGamma } from "./distributions/gamma.js";
export { normalCdf, normalPdf, normalQuantile } from "./distributions/normal.js";
export { studentTCdf, studentTQuantile } from "./distributions/student-t.js";

export { kolmogorovSmirnov, type KolmogorovSmirnovResult } from "./tests/kolmogorov-smirnov.js";
export {
  mcnemarExact,
  mcnemarNonInferiority,
  type McNemarResult,
  type NonInferiorityResult,
} from "./tests/mcnemar.js";
export { holm } from "./tests/multiplicity.js";
export { type MarginVerdict, nonInferiority } from "./tests/non-inferiority.js";
export type { PairedTable } from "./tests/paired-table.js";
export { signTest } from "./tests/sign-test.js";
export { pairedTTest, type TTestOptions, type TTestResult, welchTTest } from "./tests/t-tests.js";
export type { TestResult } from "./tests/test-result.js";

export { meanInterval } from "./intervals/mean.js";
export { pairedDifference } from "./intervals/paired-difference.js";
export {
  clopperPearson,
  newcombeDifference,
  type Proportion,
  wilsonInterval,
} from "./intervals/proportion.js";
export {
  quantile,
  quantileBound,
  quantileInterval,
  requestsForQuantileBound,
  sortedQuantile,
  tailMean,
} from "./intervals/quantile.js";

export {
  type Bootstrapped,
  ClusterBootstrap,
  type ClusterSums,
  type Statistic,
} from "./resampling/cluster-bootstrap.js";
export { minimumClusters } from "./resampling/resamples.js";
export {
  clusterBootstrap,
  type ClusterBootstrapOptions,
  twoSampleBootstrap,
  type TwoSampleEstimate,
} from "./resampling/two-sample-bootstrap.js";
export { type Clusters, type ClusterStatistic, WeightedClusters } from "./resampling/weighted-clusters.js";

export { BoundedMeanSequence, type BoundedMeanOptions } from "./sequential/bounded-mean-sequence.js";
export { EProcess, exceedanceRateBound } from "./sequential/e-process.js";
export {
  asymptoticMeanSequence,
  MeanEProcess,
  type MeanEProcessOptions,
  type MeanEvidence,
  noMeanEvidence,
} from "./sequential/mean-e-process.js";

export { detectableDifference, pairsForDifference, pairsForNonInferiority } from "./planning/paired.js";

export {
  type AgreementTable,
  agreementTable,
  cohenKappa,
  type KappaResult,
} from "./agreement/cohen-kappa.js";
export {
  balancedAccuracy,
  type BalancedAccuracy,
  type CorrectedRate,
  correctedRate,
  type JudgeCalibration,
} from "./agreement/judge-accuracy.js";
export { rocCurve, type RocResult } from "./agreement/roc.js";
export { predictionPoweredMean, type PredictionPoweredMean } from "./agreement/prediction-powered-mean.js";

export {
  type ClusterRegression,
  clusterRobustRegression,
  type Coefficient,
  type RegressionInput,
} from "./regression/cluster-robust-regression.js";
export {
  cochranQ,
  type Heterogeneity,
  randomEffects,
  type RandomEffects,
  type UnitEffect,
} from "./regression/random-effects.js";

export { jensenShannon, wasserstein, wassersteinOfCounts } from "./distances/distances.js";
