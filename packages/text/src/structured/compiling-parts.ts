/** Modules that the first grammar needs; loading them then keeps them out of every start. */
export { MaskCache } from "./automaton/mask-cache.js";
export { TermGrammar } from "./automaton/matcher.js";
export { collectTokenBytes } from "./automaton/vocabulary.js";
export { CompileQueue } from "./compile-queue.js";
