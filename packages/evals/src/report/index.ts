export { type PageOptions, renderReportHtml } from "./page.js";
export * from "./report.js";
