import { parentPort, workerData } from "node:worker_threads";
import { OctavoError } from "@octavo/protocol/errors";
import { MaskCache } from "./automaton/mask-cache.js";
import { TermGrammar } from "./automaton/matcher.js";
import { buildVocabulary, type GrammarVocabulary } from "./automaton/vocabulary.js";
import { compileRules } from "./compile-rules.js";
import type { CompileReply, CompileTask, WorkerStart } from "./compile-thread.js";
import type { GrammarSpec } from "./grammar.js";
import type { RuleSet } from "./node.js";
import { tryOut } from "./try-out.js";
import { withWork } from "../work.js";

const port = parentPort;
if (port === null)
  throw new OctavoError("internal_error", "The grammar compiler must run in a worker thread.");

const { source, specialTokens, maxWork } = workerData as WorkerStart;
let vocabulary: GrammarVocabulary;
if ("trie" in source) vocabulary = source;
else {
  vocabulary = buildVocabulary(source.bytes, source.starts);
  port.postMessage({ vocabulary } satisfies CompileReply);
}
const special = new Set(specialTokens);

port.on("message", ({ taskId, spec }: CompileTask) => {
  let reply: CompileReply;
  try {
    reply = { taskId, rules: withWork(maxWork, tooMuchWork, () => compile(JSON.parse(spec) as GrammarSpec)) };
  } catch (thrown) {
    const { code, message, param } =
      thrown instanceof RangeError
        ? new OctavoError("invalid_request", "The constraint is nested too deeply to be compiled.")
        : OctavoError.from(thrown);
    reply = { taskId, failure: { code, message, ...(param !== undefined && { param }) } };
  }
  port.postMessage(reply);
});

function tooMuchWork(): OctavoError {
  return new OctavoError(
    "invalid_request",
    `The constraint takes more than ${maxWork} steps to compile; give a simpler one.`,
  );
}

function compile(spec: GrammarSpec): RuleSet {
  const rules = compileRules(spec, special);
  tryOut(new TermGrammar(rules, vocabulary, new MaskCache(16 * 1024 * 1024)));
  return rules;
}
