export {
  compareModels,
  type ComparedModel,
  type CompareOptions,
  type CompareProgress,
  type ModelComparison,
} from "./compare.js";
export { renderHtml } from "./report/html/page.js";
export { renderTable } from "./report/table.js";
export type { Cell, Estimate, Summary } from "./report/summary.js";
export type { Verdict, VerdictName } from "./report/verdict.js";
