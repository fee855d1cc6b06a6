export { type CountTokens } from "./ruler/fit-length.js";
export { serverTokens } from "./server-tokens.js";
export { rulerDataset, type RulerOptions } from "./ruler/ruler.js";
export { type RulerQuestion, type RulerTaskName, rulerTaskNames } from "./ruler/ruler-task.js";
export { stringMatch } from "./ruler/string-match.js";
