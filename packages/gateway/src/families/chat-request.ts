import {
  asArray,
  asObjects,
  asRecord,
  asString,
  type JsonFields,
  OctavoError,
  parseJson,
} from "@octavo/protocol";

/** A chat request in OpenAI's shape, read for translation into another. */
export interface ChatRequestParts {
  readonly system: readonly string[];
  readonly turns: readonly ChatTurn[];
  readonly tools: readonly ChatFunction[];
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string } | undefined;
  readonly maxTokens: number | undefined;
  readonly stop: readonly string[];
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  /** Schema in `response_format`; `true` asks for any JSON object. */
  readonly jsonSchema: JsonFields | true | undefined;
}

export interface ChatTurn {
  readonly role: "user" | "assistant" | "tool";
  readonly parts: readonly ChatPart[];
  readonly calls: readonly ChatCall[];
  /** Tool messages only: the call that it answers. */
  readonly callId: string | undefined;
}

export type ChatPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly mediaType: string; readonly base64: string }
  | { readonly type: "image-url"; readonly url: string };

export interface ChatCall {
  readonly id: string;
  readonly name: string;
  readonly input: JsonFields;
}

export interface ChatFunction {
  readonly name: string;
  readonly description: string | undefined;
  readonly schema: JsonFields;
}

/** What the formats that are translated cannot say; a value that asks for nothing passes. */
const untranslatable: Readonly<Record<string, (value: unknown) => boolean>> = {
  n: (value) => value !== 1,
  logprobs: (value) => value === true,
  audio: () => true,
};

/** Throws `unsupported_parameter` or `invalid_request` that names the field. */
export function readChatRequest(fields: JsonFields): ChatRequestParts {
  for (const [name, asksFor] of Object.entries(untranslatable)) {
    const value = fields[name];
    if (value !== undefined && value !== null && asksFor(value))
      throw new OctavoError("unsupported_parameter", `${name}: this model's provider has no such setting`, {
        param: name,
      });
  }
  const system: string[] = [];
  const turns: ChatTurn[] = [];
  for (const [index, message] of asObjects(fields["messages"]).entries()) {
    const role = asString(message["role"]);
    const parts = readParts(message["content"], index);
    if (role === "system" || role === "developer") {
      system.push(parts.map((part) => (part.type === "text" ? part.text : "")).join(""));
    } else if (role === "user" || role === "assistant" || role === "tool") {
      turns.push({
        role,
        parts,
        calls: asObjects(message["tool_calls"]).map((call) => readCall(call, index)),
        callId: asString(message["tool_call_id"]),
      });
    } else {
      throw invalid(`messages[${index}].role`, "expected system, developer, user, assistant or tool");
    }
  }
  if (turns.length === 0) throw invalid("messages", "expected at least one message that is not the system's");
  const stop = fields["stop"];
  return {
    system,
    turns,
    tools: asObjects(fields["tools"]).map(readTool),
    toolChoice: readToolChoice(fields["tool_choice"]),
    maxTokens: numberOf(fields["max_completion_tokens"]) ?? numberOf(fields["max_tokens"]),
    stop: typeof stop === "string" ? [stop] : asArray(stop).filter((text) => typeof text === "string"),
    temperature: numberOf(fields["temperature"]),
    topP: numberOf(fields["top_p"]),
    jsonSchema: readFormat(asRecord(fields["response_format"])),
  };
}

/**
 * Turns for formats in which roles alternate: tool results go into the user's turn, and neighbours of one role become one.
 * @param blocksOf - a turn's content in the format
 */
export function alternatingTurns(
  turns: readonly ChatTurn[],
  blocksOf: (turn: ChatTurn) => JsonFields[],
): readonly JsonFields[] {
  const merged: { role: string; content: JsonFields[] }[] = [];
  for (const turn of turns) {
    const role = turn.role === "assistant" ? "assistant" : "user";
    const blocks = blocksOf(turn);
    const last = merged.at(-1);
    if (last?.role === role) last.content.push(...blocks);
    else merged.push({ role, content: blocks });
  }
  return merged;
}

function readParts(content: unknown, index: number): readonly ChatPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return asObjects(content).map((part, at): ChatPart => {
    if (part["type"] === "text" || part["type"] === "refusal")
      return { type: "text", text: asString(part["text"] ?? part["refusal"]) ?? "" };
    if (part["type"] === "image_url") {
      const url = asString(asRecord(part["image_url"])["url"]) ?? "";
      const [, mediaType, base64] = /^data:([\w/+.-]+);base64,(.*)$/s.exec(url) ?? [];
      return mediaType === undefined || base64 === undefined
        ? { type: "image-url", url }
        : { type: "image", mediaType, base64 };
    }
    throw new OctavoError(
      "unsupported_parameter",
      `messages[${index}].content[${at}]: this model's provider takes text and images alone`,
      { param: `messages[${index}].content[${at}].type` },
    );
  });
}

function readCall(call: JsonFields, index: number): ChatCall {
  const { name, arguments: text } = asRecord(call["function"]);
  const input = text === undefined || text === "" ? {} : parseJson(asString(text) ?? "")?.value;
  if (typeof input !== "object" || input === null)
    throw invalid(`messages[${index}].tool_calls`, "a call's arguments are not a JSON object");
  return { id: asString(call["id"]) ?? "", name: asString(name) ?? "", input: asRecord(input) };
}

function readTool(tool: JsonFields, index: number): ChatFunction {
  if (tool["type"] === "custom")
    throw new OctavoError(
      "unsupported_parameter",
      `tools[${index}].type: this model's provider takes functions alone`,
      { param: `tools[${index}].type` },
    );
  const { name, description, parameters } = asRecord(tool["function"]);
  return {
    name: asString(name) ?? "",
    description: asString(description),
    schema: { type: "object", properties: {}, ...asRecord(parameters) },
  };
}

function readToolChoice(choice: unknown): ChatRequestParts["toolChoice"] {
  if (choice === "auto" || choice === "none" || choice === "required") return choice;
  const name = asString(asRecord(asRecord(choice)["function"])["name"]);
  return name === undefined ? undefined : { name };
}

function readFormat(format: JsonFields): ChatRequestParts["jsonSchema"] {
  if (format["type"] === "json_object") return true;
  if (format["type"] !== "json_schema") return undefined;
  return asRecord(asRecord(format["json_schema"])["schema"]);
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function invalid(param: string, message: string): OctavoError {
  return new OctavoError("invalid_request", `${param}: ${message}`, { param });
}
