export {
  compareModels,
  type ComparedModel,
  type CompareOptions,
  type CompareProgress,
  type ModelComparison,
} from "./compare.js";
export { renderHtml } from "./report/html/page.js";
export { renderTable } from "./report/table.js";
export type { Cell, ScoreEstimate, Summary } from "./report/summary.js";
export type { ComparisonVerdict, VerdictName } from "./report/verdict.js";
