import { isRecord, OctavoError } from "@octavo/protocol";
import type { LoadMessage, LoadDataset, LoadCase } from "./dataset.js";

export interface FileOptions {
  readonly path: string;
  /** For cases that name no length of their own. */
  readonly outputTokens: number;
  readonly ignoreEos: boolean;
}

/**
 * Prompts from JSON lines. A line holds `prompt` (text), `messages` (chat) or `conversations` (ShareGPT: the first human
 * turn is the prompt), and optionally `max_tokens` or `output_tokens`. Fewer lines than requests are used again in turn.
 */
export function fileDataset(content: string, options: FileOptions): LoadDataset {
  const lines = content.split("\n").map((line, index) => ({ line: line.trim(), number: index + 1 }));
  const parsed = lines
    .filter(({ line }) => line !== "")
    .map(({ line, number }) => parseLine(line, `${options.path}:${number}`, options));
  if (parsed.length === 0)
    throw new OctavoError("invalid_option", `${options.path} holds no cases`, { param: "dataset" });
  return {
    cases: (count) => Array.from({ length: count }, (_, index): LoadCase => parsed[index % parsed.length]!),
  };
}

function parseLine(line: string, where: string, options: FileOptions): LoadCase {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new OctavoError("invalid_option", `${where} is not JSON`, { param: "dataset", cause });
  }
  const record = isRecord(value) ? value : {};
  const wanted = record["max_tokens"] ?? record["output_tokens"];
  const maxTokens = typeof wanted === "number" && wanted >= 1 ? Math.floor(wanted) : options.outputTokens;
  const prompt = promptOf(record);
  if (prompt === undefined) {
    throw new OctavoError("invalid_option", `${where} has no "prompt", "messages" or "conversations"`, {
      param: "dataset",
    });
  }
  return { prompt, maxTokens, ignoreEos: options.ignoreEos };
}

function promptOf(record: Readonly<Record<string, unknown>>): string | readonly LoadMessage[] | undefined {
  if (typeof record["prompt"] === "string") return record["prompt"];
  const messages = record["messages"];
  if (Array.isArray(messages) && messages.every(isMessage)) return messages;
  const turns = record["conversations"];
  if (!Array.isArray(turns)) return undefined;
  const human = turns.find((turn) => isRecord(turn) && (turn["from"] === "human" || turn["role"] === "user"));
  const said: unknown = isRecord(human) ? (human["value"] ?? human["content"]) : undefined;
  return typeof said === "string" ? said : undefined;
}

function isMessage(value: unknown): value is LoadMessage {
  return isRecord(value) && typeof value["role"] === "string" && typeof value["content"] === "string";
}
