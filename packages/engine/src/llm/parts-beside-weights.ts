/** Modules that are needed only once weights are being packed, imported meanwhile: more than half of the engine. */
export { createEngine } from "../create-engine.js";
export { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
export { prepareEngine } from "./prepare-engine.js";
export { compileTemplates } from "./templates.js";
