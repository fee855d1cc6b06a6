import { stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isRecord } from "@octavo/protocol";
import type {
  CaseMessage,
  EvalCase,
  ExpectedToolCall,
  Expectation,
  ToolDefinition,
} from "../../cases/eval-case.js";
import { fileSource } from "../byte-source.js";
import { CaseIds } from "../case-ids.js";
import { parseMessages } from "../case-messages.js";
import { acceptedValues } from "../case-tools.js";
import type { Dataset } from "../dataset.js";
import { type JsonLine, readJsonLines } from "../jsonl.js";
import { invalidFile, invalidRecord, type Place, quoted } from "../place.js";
import { FunctionDocuments, functionsByTurn } from "./bfcl-functions.js";
import { bfclTools, type SourceLanguage, sourceTypes, wireName } from "./bfcl-schema.js";
import { goldResultsFolder, refuseCategory, turnCases } from "./bfcl-turns.js";
import { parsePythonCall } from "./python-call.js";

/** Golds are held whole; the leaderboard's largest file of them is under a megabyte. */
const maxAnswerFileBytes = 128 * 1024 * 1024;

/** How the Berkeley function-calling leaderboard's files are read. */
export interface BfclOptions {
  /** The file with the golds. Default: that of the same name in `possible_answer` beside the questions. */
  readonly answers?: string;
}

/**
 * Cases of the Berkeley Function-Calling Leaderboard (versions 1 to 4): `question`, `function` and, in a file of its own,
 * `ground_truth` with the accepted values of each argument. Irrelevance cases expect no call; relevance cases have no
 * gold. Arguments of Java's and JavaScript's functions are source text, as the leaderboard has them.
 *
 * Multi-turn cases ask the first turn, whose calls are the gold, in their order. Later turns rest on what the calls
 * before them gave, which the leaderboard's simulated classes make: where a file in `gold_results` beside the questions has
 * them (`tools/oracle/bfcl-gold-results.py` writes it with the leaderboard's package), each later turn is a case too, after the
 * right calls of the turns before it. Without the file later turns are left out and counted.
 */
export function bfclDataset(path: string, options: BfclOptions = {}): Dataset {
  let laterTurns = 0;
  return {
    name: basename(path),
    size: undefined,
    skipped: (): Readonly<Record<string, number>> =>
      laterTurns === 0
        ? {}
        : {
            [`a later turn, and there is no ${goldResultsFolder} with what the calls before it gave`]:
              laterTurns,
          },
    async *cases() {
      laterTurns = 0;
      refuseCategory(path);
      const answersPath = options.answers ?? join(dirname(path), "possible_answer", basename(path));
      const hasAnswers = options.answers !== undefined || (await isFile(answersPath));
      const answers = hasAnswers ? await readById(answersPath, "ground_truth") : undefined;
      const resultsPath = join(dirname(path), goldResultsFolder, basename(path));
      const results = (await isFile(resultsPath)) ? await readById(resultsPath, "results") : undefined;
      const documents = new FunctionDocuments(join(dirname(path), "multi_turn_func_doc"));
      const ids = new CaseIds();
      for await (const lines of readJsonLines(fileSource(path))) {
        for (const line of lines) {
          const { cases, numTurns } = await bfclCases(line, {
            answers,
            answersPath,
            results,
            documents,
            ids,
          });
          laterTurns += numTurns - cases.length;
          yield* cases;
        }
      }
    },
  };
}

interface Surroundings {
  readonly answers: ReadonlyMap<string, unknown> | undefined;
  readonly answersPath: string;
  readonly results: ReadonlyMap<string, unknown> | undefined;
  readonly documents: FunctionDocuments;
  readonly ids: CaseIds;
}

async function bfclCases(
  { record, place }: JsonLine,
  { answers, answersPath, results, documents, ids }: Surroundings,
): Promise<{ readonly cases: readonly EvalCase[]; readonly numTurns: number }> {
  const id = record["id"];
  if (typeof id !== "string") throw invalidRecord(place, "id", `must be text, but is ${quoted(id)}`);
  const category = /^(.*?)_\d/.exec(id)?.[1] ?? "unknown";
  const turns = parseTurns(record["question"], place);
  const language = languageOf(category);
  const allTools =
    record["function"] === undefined
      ? await documents.toolsOf(record, place)
      : bfclTools(record["function"], place, language);
  const truth = record["ground_truth"] ?? answers?.get(id);
  const isGoldless = /irrelevance|relevance|chatable/.test(category);
  if (truth === undefined && !isGoldless) {
    const problem =
      answers === undefined
        ? `and there is no ${answersPath}`
        : `and ${answersPath} has none for ${quoted(id)}`;
    throw invalidRecord(place, "ground_truth", `is missing, ${problem}`);
  }
  const isIrrelevance = category.includes("irrelevance");
  const parsed = isIrrelevance ? [[]] : parseTruth(truth, allTools, place);
  const expectedTurns =
    language === undefined ? parsed : parsed?.map((calls) => inSource(calls, record["function"], language));
  const isMultiTurn = expectedTurns !== undefined && (turns.length > 1 || category.startsWith("multi_turn"));
  const calls = expectedTurns?.[0];
  const laterFunctions = functionsByTurn(record);
  const expected: Expectation = {
    ...(calls !== undefined && { toolCalls: calls }),
    ...(isMultiTurn && { isOrderFree: false }),
  };
  const first: EvalCase = {
    id: ids.claim(id, place),
    messages: turns[0] ?? [],
    tools: allTools.filter((tool) => !laterFunctions.has(tool.function.name)),
    context: undefined,
    expected,
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: ["tools", `bfcl:${category}`],
    metadata: { benchmark: "bfcl" },
  };
  if (!isMultiTurn) return { cases: [first], numTurns: turns.length };
  const given = results?.get(id);
  if (given === undefined) {
    const later = { laterTurns: turns.slice(1), laterToolCalls: expectedTurns.slice(1) };
    return { cases: [{ ...first, metadata: { ...first.metadata, ...later } }], numTurns: turns.length };
  }
  const conversation = { turns, expectedTurns, results: given, allTools, laterFunctions };
  return { cases: turnCases(first, conversation, place), numTurns: turns.length };
}

function languageOf(category: string): SourceLanguage | undefined {
  if (/(?:^|_)java$/.test(category)) return "java";
  return /(?:^|_)javascript$/.test(category) ? "javascript" : undefined;
}

/** Calls with the types that their arguments' source text is of. */
function inSource(
  calls: readonly ExpectedToolCall[],
  functions: unknown,
  language: SourceLanguage,
): ExpectedToolCall[] {
  const documents = Array.isArray(functions) ? functions : [functions];
  return calls.map((call) => {
    const document: unknown = documents.find(
      (one: unknown) =>
        isRecord(one) && typeof one["name"] === "string" && wireName(one["name"]) === call.name,
    );
    return { ...call, sources: sourceTypes(document, language) };
  });
}

/** Turns of messages; the first versions have one text, or one turn without a list around it. */
function parseTurns(question: unknown, place: Place): CaseMessage[][] {
  if (typeof question === "string") return [[{ role: "user", content: question }]];
  if (!Array.isArray(question) || question.length === 0) {
    throw invalidRecord(place, "question", `must be a list of turns, but is ${quoted(question)}`);
  }
  if (question.every(isRecord)) return [parseMessages(question, "question", place)];
  return question.map((turn: unknown, index) =>
    // turns in which functions become known have no message
    Array.isArray(turn) && turn.length === 0 && index > 0
      ? []
      : parseMessages(turn, `question[${index}]`, place),
  );
}

/** Golds by turn: objects of accepted values, or, turn by turn, calls as Python writes them. */
function parseTruth(
  truth: unknown,
  tools: readonly ToolDefinition[],
  place: Place,
): ExpectedToolCall[][] | undefined {
  if (truth === undefined) return undefined;
  if (!Array.isArray(truth)) {
    throw invalidRecord(place, "ground_truth", `must be a list of calls, but is ${quoted(truth)}`);
  }
  if (truth.length > 0 && truth.every(Array.isArray)) {
    return truth.map((turn: readonly unknown[], index) =>
      turn.map((call, at) => parseCall(call, `ground_truth[${index}][${at}]`, tools, place)),
    );
  }
  return [truth.map((call: unknown, at) => parseCall(call, `ground_truth[${at}]`, tools, place))];
}

function parseCall(
  call: unknown,
  field: string,
  tools: readonly ToolDefinition[],
  place: Place,
): ExpectedToolCall {
  if (isRecord(call)) {
    const [only, ...others] = Object.entries(call);
    if (only === undefined || others.length > 0) {
      throw invalidRecord(place, field, "must have the name of one function as its key");
    }
    const [name, accepted] = only;
    return { name: wireName(name), arguments: acceptedValues(accepted, `${field}.${name}`, place) };
  }
  const parsed = typeof call === "string" ? parsePythonCall(call) : undefined;
  if (parsed === undefined) {
    throw invalidRecord(place, field, `must be a call with literal arguments, but is ${quoted(call)}`);
  }
  const name = wireName(parsed.name);
  const tool = tools.find(({ function: { name: own } }) => own === name);
  const properties = tool?.function.parameters?.["properties"];
  const order = isRecord(properties) ? Object.keys(properties) : [];
  const given = parsed.positional.map((value, index): [string, readonly unknown[]] => {
    const parameter = order[index];
    if (parameter === undefined) {
      throw invalidRecord(place, field, `has an argument without a name, which ${name} has no parameter for`);
    }
    return [parameter, [value]];
  });
  const named = Object.entries(parsed.named).map(([key, value]): [string, readonly unknown[]] => [
    key,
    [value],
  ]);
  return { name, arguments: Object.fromEntries([...given, ...named]) };
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** One field of the lines of a file, by their `id`. */
async function readById(path: string, field: string): Promise<ReadonlyMap<string, unknown>> {
  const size = (await isFile(path)) ? (await stat(path)).size : 0;
  if (size > maxAnswerFileBytes) {
    throw invalidFile(path, `has ${size} bytes; golds of up to ${maxAnswerFileBytes} are held in memory`);
  }
  const byId = new Map<string, unknown>();
  for await (const lines of readJsonLines(fileSource(path))) {
    for (const { record, place } of lines) {
      const id = record["id"];
      if (typeof id !== "string") throw invalidRecord(place, "id", `must be text, but is ${quoted(id)}`);
      byId.set(id, record[field]);
    }
  }
  return byId;
}
