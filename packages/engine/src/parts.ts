/** What a loaded model is put together from, for those who use a part alone; whoever loads a model does not wait for them. */
export { createEngine } from "./create-engine.js";
export { GrammarCompiler, type GrammarCompilerOptions } from "@octavo/text/structured/grammar-compiler";
export { compileChatTemplate } from "@octavo/text/template/compile-chat-template";
export { detectContentFormat } from "@octavo/text/template/detect-content-format";
export { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
