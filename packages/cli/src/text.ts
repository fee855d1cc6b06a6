/** What a model's input and output text need, without kernels: tokens, chat layout, constraints, parsed answers, prefix hashes. */
export { OutputParser } from "@octavo/text/parsers/output-parser";
export type { OutputEvent } from "@octavo/text/parsers/output-events";
export { resolveFormats } from "@octavo/text/parsers/registry";
export { prefixBlockHashes } from "@octavo/text/prefix-hash/prefix-hash";
export type * from "@octavo/text/structured/grammar";
export { GrammarCompiler, type GrammarCompilerOptions } from "@octavo/text/structured/grammar-compiler";
export type { ChatTemplate, TemplateInput, TemplateMessage } from "@octavo/text/template/chat-template";
export { compileChatTemplate } from "@octavo/text/template/compile-chat-template";
export { detectContentFormat } from "@octavo/text/template/detect-content-format";
export { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
export { readTokenizerFolder } from "@octavo/text/tokenizer/read/tokenizer-folder";
export type { Detokenizer, Tokenizer } from "@octavo/text/tokenizer/tokenizer";
