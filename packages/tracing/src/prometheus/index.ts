export { Histogram } from "./histogram.js";
export { Counter, Gauge, noLabels, type Labels } from "./metric.js";
export { prometheusContentType, Registry } from "./registry.js";
