/** What a loaded model is put together from, for those who use a part alone; whoever loads a model does not wait for them. */
export { createEngine } from "./engine/create-engine.js";
export { GrammarCompiler, type GrammarCompilerOptions } from "./structured/grammar-compiler.js";
export { compileChatTemplate } from "./template/compile-chat-template.js";
export { detectContentFormat } from "./template/detect-content-format.js";
export { createTokenizer } from "./tokenizer/create-tokenizer.js";
