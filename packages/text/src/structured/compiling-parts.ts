/** What compiling the first grammar takes, and no start. */
export { MaskCache } from "./automaton/mask-cache.js";
export { TermGrammar } from "./automaton/matcher.js";
export { collectTokenBytes } from "./automaton/vocabulary.js";
export { CompileQueue } from "./compile-queue.js";
