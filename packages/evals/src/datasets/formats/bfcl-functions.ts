import { join } from "node:path";
import { asArray, asRecord } from "@octavo/protocol";
import type { ToolDefinition } from "../../cases/eval-case.js";
import { fileSource } from "../byte-source.js";
import { readJsonLines } from "../jsonl.js";
import { invalidRecord, type Place, quoted } from "../place.js";
import { bfclTools, wireName } from "./bfcl-schema.js";

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

/** Tools of multi-turn cases, by the classes they involve; each file is read once. */
export class FunctionDocuments {
  readonly #folder: string;
  readonly #read = new Map<string, Promise<ToolDefinition[]>>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** All functions of the classes that a case involves but the excluded ones. */
  async toolsOf(record: Readonly<Record<string, unknown>>, place: Place): Promise<ToolDefinition[]> {
    const classes = record["involved_classes"];
    if (!Array.isArray(classes)) {
      throw invalidRecord(
        place,
        "function",
        "is missing, and there are no involved_classes to take tools from",
      );
    }
    const excluded = new Set(namesOf(record["excluded_function"]));
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
      tools.push(...(await read).filter((tool) => !excluded.has(tool.function.name)));
    }
    return tools;
  }
}

/** Functions that are not known before a turn, as the turn's number has them. */
export function functionsByTurn(record: Readonly<Record<string, unknown>>): ReadonlyMap<string, number> {
  const { missed_function: missed } = record;
  return new Map(
    Object.entries(asRecord(missed)).flatMap(([turn, names]) =>
      namesOf(names).map((name): [string, number] => [name, Number(turn)]),
    ),
  );
}

function namesOf(list: unknown): readonly string[] {
  return asArray(list)
    .filter((name) => typeof name === "string")
    .map(wireName);
}

async function readDocuments(path: string): Promise<ToolDefinition[]> {
  const tools: ToolDefinition[] = [];
  for await (const lines of readJsonLines(fileSource(path))) {
    for (const { record, place } of lines) tools.push(...bfclTools(record, place));
  }
  return tools;
}
