/** What a load needs once its weights are being packed: more than half of the engine's modules, read meanwhile. */
export { createEngine } from "../engine/create-engine.js";
export { createTokenizer } from "../tokenizer/create-tokenizer.js";
export { compileTemplates } from "./templates.js";
