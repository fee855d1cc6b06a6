/** Modules that are needed only once weights are being packed, imported meanwhile: more than half of the engine. */
export { createEngine } from "../create-engine.js";
export { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
export { compileTemplates } from "./templates.js";
