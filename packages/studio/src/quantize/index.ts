export { quantizeMethods, type QuantizeOptions } from "./options.js";
export { quantize, type QuantizeHooks } from "./quantize.js";
export type { QuantizationCard } from "./report/card.js";
export type { QuantizeProgress } from "./report/progress.js";
