/** The parts of a loaded model, for use on their own. Loading a model does not wait for importing them. */
export { promptOf } from "./llm/embedding-prompt.js";
export { createEngine } from "./create-engine.js";
export { GrammarCompiler, type GrammarCompilerOptions } from "@octavo/text/structured/grammar-compiler";
export { compileChatTemplate } from "@octavo/text/template/compile-chat-template";
export { detectContentFormat } from "@octavo/text/template/detect-content-format";
export { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
