export { drawChart } from "./charts/draw-chart.js";
export { type Chart, type HeatCell } from "./charts/chart.js";
export { histogram } from "./charts/histogram.js";
export { intervalChart } from "./charts/interval-chart.js";
export { type ReliabilityCurve, reliabilityCurve } from "./charts/reliability-curve.js";
export { ratingBadge, section, table, type TableCell } from "./elements.js";
export { clip, escapeHtml, shorten, visibleText } from "./escape.js";
export { formatDuration, formatInterval, formatP, formatValue, significant } from "./format.js";
export { renderPage } from "./page.js";
