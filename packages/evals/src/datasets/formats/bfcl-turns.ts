import { basename } from "node:path";
import { isRecord } from "@octavo/protocol";
import type { CaseMessage, EvalCase, ExpectedToolCall, ToolDefinition } from "../../cases/eval-case.js";
import { invalidFile, invalidRecord, type Place, quoted } from "../place.js";

/** The folder, beside the questions, of what the right calls of multi-turn cases give. */
export const goldResultsFolder = "gold_results";

/** Files of the leaderboard that have no case which one request could answer, and why. */
const refused: Readonly<Record<string, string>> = {
  memory:
    "its questions are about conversations that a memory tool of the leaderboard has to be filled with first, and are answered by many calls of that tool; run the leaderboard's own package",
  web_search:
    "its questions take many calls of a search engine on the open web; run the leaderboard's own package",
  format_sensitivity:
    "it has no cases of its own, but names cases of other files to be asked in other prompt formats; open those files",
};

/** @throws OctavoError `dataset_invalid` for the leaderboard's files that are no single requests */
export function refuseCategory(path: string): void {
  const category = /^BFCL_v\d+_(\w+)\.json$/.exec(basename(path))?.[1];
  const reason = category === undefined ? undefined : refused[category];
  if (reason !== undefined) throw invalidFile(path, `cannot be evaluated: ${reason}`);
}

interface MultiTurn {
  readonly turns: readonly (readonly CaseMessage[])[];
  readonly expectedTurns: readonly (readonly ExpectedToolCall[])[];
  /** For each turn, what its right calls give, as text. */
  readonly results: unknown;
  readonly allTools: readonly ToolDefinition[];
  /** Functions that become known in a later turn. */
  readonly laterFunctions: ReadonlyMap<string, number>;
}

/** What a user says whose turn only brings new functions. */
const newFunctions = "There are more functions to choose from now. Can you do it with them?";
/** What the assistant says in a turn in which no call is right. */
const cannot = "I cannot do that with what I have: a function or a detail is missing.";

/** A case for each turn, after the right calls of the turns before it and what they gave. All are of one cluster. */
export function turnCases(first: EvalCase, conversation: MultiTurn, place: Place): readonly EvalCase[] {
  const { turns, expectedTurns, results, allTools, laterFunctions } = conversation;
  const messages: CaseMessage[] = [];
  return turns.map((turn, index) => {
    messages.push(...(turn.length === 0 ? [{ role: "user", content: newFunctions } as const] : turn));
    const calls = expectedTurns[index] ?? [];
    const own: EvalCase = {
      ...first,
      id: index === 0 ? first.id : `${first.id}#turn-${index + 1}`,
      cluster: first.id,
      messages: [...messages],
      tools: allTools.filter(({ function: { name } }) => (laterFunctions.get(name) ?? 0) <= index),
      expected: { toolCalls: calls, isOrderFree: false },
      tags: [...first.tags, index === 0 ? "bfcl:first-turn" : "bfcl:later-turn"],
    };
    messages.push(...callMessages(calls, resultsOf(results, index, calls.length, place), index));
    return own;
  });
}

/** A message per call, since later calls of a turn may rest on what earlier ones gave. */
function callMessages(
  calls: readonly ExpectedToolCall[],
  results: readonly string[],
  turn: number,
): readonly CaseMessage[] {
  if (calls.length === 0) return [{ role: "assistant", content: cannot }];
  return calls.flatMap(({ name, arguments: accepted }, at): readonly CaseMessage[] => {
    const id = `call_${turn}_${at}`;
    const given = Object.fromEntries(Object.entries(accepted).map(([key, values]) => [key, values[0]]));
    return [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name, arguments: JSON.stringify(given) } }],
      },
      { role: "tool", tool_call_id: id, content: results[at] ?? "" },
    ];
  });
}

function resultsOf(results: unknown, turn: number, numCalls: number, place: Place): readonly string[] {
  const own: unknown = Array.isArray(results) ? results[turn] : undefined;
  if (Array.isArray(own) && own.length === numCalls && own.every((text) => typeof text === "string"))
    return own;
  throw invalidRecord(
    place,
    goldResultsFolder,
    `must have ${numCalls} texts for turn ${turn + 1}, but has ${quoted(isRecord(own) ? "an object" : own)}`,
  );
}
