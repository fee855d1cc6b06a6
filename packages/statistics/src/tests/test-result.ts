export interface TestResult {
  /** Undefined where the data cannot say, such as two samples without variance; the function's docstring says when. */
  readonly pValue: number | undefined;
  readonly statistic: number | undefined;
}
