/** What a load needs once its weights are being packed: more than half of the engine's modules, read meanwhile. */
export { createEngine } from "../create-engine.js";
export { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
export { compileTemplates } from "./templates.js";
