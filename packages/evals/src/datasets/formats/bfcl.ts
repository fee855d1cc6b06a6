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
import { bfclTools, wireName } from "./bfcl-schema.js";
import { parsePythonCall } from "./python-call.js";

/** The files that hold the functions of the classes that multi-turn cases involve, as the leaderboard names them. */
const documentOfClass: Readonly<Record<string, string>> = {
  GorillaFileSystem: "gorilla_file_system",
  MathAPI: "math_api",
  MessageAPI: "message_api",
  TwitterAPI: "posting_api",
  TicketAPI: "ticket_api",
  TradingBot: "trading_bot",
  TravelAPI: "travel_booking",
  VehicleControlAPI: "vehicle_control",
  WebSearchAPI: "web_search",
};

/** Golds are held whole; the leaderboard's largest file of them is under a megabyte. */
const maxAnswerFileBytes = 128 * 1024 * 1024;

export interface BfclOptions {
  /** The file with the golds. Default: that of the same name in `possible_answer` beside the questions. */
  readonly answers?: string;
}

/**
 * Cases of the Berkeley Function-Calling Leaderboard (versions 1 to 4): `question`, `function` and, in a file of its own,
 * `ground_truth` with the accepted values of each argument. Irrelevance cases expect no call; relevance cases have no
 * gold. Of multi-turn cases the first turn is asked and its calls are the gold, in their order. Later turns rest on what the
 * calls before them gave, which is in no file but made by the leaderboard's simulated classes: they are skipped and counted,
 * their questions and calls are in the metadata.
 */
export function bfclDataset(path: string, options: BfclOptions = {}): Dataset {
  let laterTurns = 0;
  return {
    name: basename(path),
    size: undefined,
    skipped: (): Readonly<Record<string, number>> =>
      laterTurns === 0 ? {} : { "a later turn, which needs what the calls before it gave": laterTurns },
    async *cases() {
      laterTurns = 0;
      const answersPath = options.answers ?? join(dirname(path), "possible_answer", basename(path));
      const hasAnswers = options.answers !== undefined || (await isFile(answersPath));
      const answers = hasAnswers ? await readAnswers(answersPath) : undefined;
      const documents = new FunctionDocuments(join(dirname(path), "multi_turn_func_doc"));
      const ids = new CaseIds();
      for await (const lines of readJsonLines(fileSource(path))) {
        for (const line of lines) {
          const { evalCase, numTurns } = await bfclCase(line, { answers, answersPath, documents, ids });
          laterTurns += numTurns - 1;
          yield evalCase;
        }
      }
    },
  };
}

interface Surroundings {
  readonly answers: ReadonlyMap<string, unknown> | undefined;
  readonly answersPath: string;
  readonly documents: FunctionDocuments;
  readonly ids: CaseIds;
}

async function bfclCase(
  { record, place }: JsonLine,
  { answers, answersPath, documents, ids }: Surroundings,
): Promise<{ readonly evalCase: EvalCase; readonly numTurns: number }> {
  const id = record["id"];
  if (typeof id !== "string") throw invalidRecord(place, "id", `must be text, but is ${quoted(id)}`);
  const category = /^(.*?)_\d/.exec(id)?.[1] ?? "unknown";
  const turns = parseTurns(record["question"], place);
  const tools =
    record["function"] === undefined
      ? await documents.toolsOf(record, place)
      : bfclTools(record["function"], place);
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
  const expectedTurns = isIrrelevance ? [[]] : parseTruth(truth, tools, place);
  const isMultiTurn = expectedTurns !== undefined && (turns.length > 1 || category.startsWith("multi_turn"));
  const calls = expectedTurns?.[0];
  const expected: Expectation = {
    ...(calls !== undefined && { toolCalls: calls }),
    ...(isMultiTurn && { isOrderFree: false }),
  };
  const evalCase = {
    id: ids.claim(id, place),
    messages: turns[0] ?? [],
    tools,
    context: undefined,
    expected,
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: ["tools", `bfcl:${category}`],
    metadata: {
      benchmark: "bfcl",
      ...(isMultiTurn && { laterTurns: turns.slice(1), laterToolCalls: expectedTurns.slice(1) }),
    },
  };
  return { evalCase, numTurns: turns.length };
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

async function readAnswers(path: string): Promise<ReadonlyMap<string, unknown>> {
  const size = (await isFile(path)) ? (await stat(path)).size : 0;
  if (size > maxAnswerFileBytes) {
    throw invalidFile(path, `has ${size} bytes; golds of up to ${maxAnswerFileBytes} are held in memory`);
  }
  const answers = new Map<string, unknown>();
  for await (const lines of readJsonLines(fileSource(path))) {
    for (const { record, place } of lines) {
      const id = record["id"];
      if (typeof id !== "string") throw invalidRecord(place, "id", `must be text, but is ${quoted(id)}`);
      answers.set(id, record["ground_truth"]);
    }
  }
  return answers;
}

/** Tools of multi-turn cases, by the classes they involve; each file is read once. */
class FunctionDocuments {
  readonly #folder: string;
  readonly #read = new Map<string, Promise<ToolDefinition[]>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  async toolsOf(record: Readonly<Record<string, unknown>>, place: Place): Promise<ToolDefinition[]> {
    const classes = record["involved_classes"];
    if (!Array.isArray(classes)) {
      throw invalidRecord(
        place,
        "function",
        "is missing, and there are no involved_classes to take tools from",
      );
    }
    const withheld = withheldFunctions(record);
    const tools: ToolDefinition[] = [];
    for (const [index, name] of classes.entries()) {
      const file = typeof name === "string" ? documentOfClass[name] : undefined;
      if (file === undefined) {
        throw invalidRecord(place, `involved_classes[${index}]`, `is ${quoted(name)}, which is not known`);
      }
      let read = this.#read.get(file);
      if (read === undefined) {
        read = readDocuments(join(this.#folder, `${file}.json`));
        this.#read.set(file, read);
      }
      tools.push(...(await read).filter((tool) => !withheld.has(tool.function.name)));
    }
    return tools;
  }
}

/** Functions that the first turn does not have: excluded ones, and those that a later turn brings. */
function withheldFunctions(record: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const { excluded_function: excluded, missed_function: missed } = record;
  const lists = [excluded, ...(isRecord(missed) ? Object.values(missed) : [])];
  const names = lists.flatMap((list) => (Array.isArray(list) ? list : []));
  return new Set(names.filter((name) => typeof name === "string").map(wireName));
}

async function readDocuments(path: string): Promise<ToolDefinition[]> {
  const tools: ToolDefinition[] = [];
  for await (const lines of readJsonLines(fileSource(path))) {
    for (const { record, place } of lines) tools.push(...bfclTools(record, place));
  }
  return tools;
}
