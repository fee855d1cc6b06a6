import { writeJson } from "../generator/json.js";
import type { Json, JsonRecord, Message, TaskTool, TaskCall } from "../generator/task.js";

export interface ModelAnswer {
  /** The text without surrounding space; empty when the server moved all of it into `calls`. */
  readonly content: string;
  /** Tool calls, whether the server parsed them or left them in the text. Undefined where one is malformed. */
  readonly calls: readonly TaskCall[] | undefined;
  readonly promptTokens: number;
}

interface Completion {
  readonly choices: readonly {
    readonly message: {
      readonly content: string | null;
      readonly tool_calls?:
        | readonly { readonly function: { readonly name: string; readonly arguments: string } }[]
        | null;
    };
  }[];
  readonly usage?: { readonly prompt_tokens: number };
}

export class ServerError extends Error {
  readonly status: number;

  constructor(status: number, body: string) {
    super(`the server answered ${status}: ${body.slice(0, 300)}`);
    this.name = "ServerError";
    this.status = status;
  }
}

/** The one call this suite needs of any OpenAI-compatible server: a greedy chat completion. */
export class ChatClient {
  readonly #url: string;
  readonly #model: string;

  constructor(url: string, model: string) {
    this.#url = url.replace(/\/$/, "");
    this.#model = model;
  }

  static async firstModel(url: string): Promise<string> {
    const response = await fetch(`${url.replace(/\/$/, "")}/models`);
    if (!response.ok) throw new ServerError(response.status, await response.text());
    const { data } = (await response.json()) as { data: readonly { readonly id: string }[] };
    const first = data[0];
    if (first === undefined) throw new ServerError(response.status, "it serves no model");
    return first.id;
  }

  async ask(
    messages: readonly Message[],
    tools: readonly TaskTool[] | undefined,
    maxTokens: number,
  ): Promise<ModelAnswer> {
    const response = await fetch(`${this.#url}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: this.#model,
        messages: wireMessages(messages),
        ...(tools === undefined ? {} : { tools }),
        temperature: 0,
        max_tokens: maxTokens,
      }),
    });
    if (!response.ok) throw new ServerError(response.status, await response.text());
    const { choices, usage } = (await response.json()) as Completion;
    const message = choices[0]?.message;
    const content = message?.content?.trim() ?? "";
    return {
      content,
      calls: readCalls(content, message?.tool_calls ?? []),
      promptTokens: usage?.prompt_tokens ?? 0,
    };
  }
}

type WireCalls = NonNullable<Completion["choices"][number]["message"]["tool_calls"]>;

function readCalls(content: string, parsed: WireCalls): TaskCall[] | undefined {
  try {
    if (parsed.length > 0)
      return parsed.map((call) => ({
        name: call.function.name,
        arguments: JSON.parse(call.function.arguments) as JsonRecord,
      }));
    const blocks = content.matchAll(/<tool_call>([\s\S]*?)<\/tool_call>/g);
    return [...blocks].map(([, block = ""]) => {
      const { name, arguments: given } = JSON.parse(block) as { name: string; arguments: JsonRecord };
      return { name, arguments: given };
    });
  } catch {
    return undefined;
  }
}

/** The wire spells arguments as text and ties each tool message to a call by id. */
function wireMessages(messages: readonly Message[]): unknown[] {
  let calls = 0;
  let results = 0;
  return messages.map((message) => {
    if (message.role === "tool") return { ...message, tool_call_id: `call_${results++}` };
    if (message.role !== "assistant" || message.tool_calls === undefined) return message;
    const wired = message.tool_calls.map((call) => ({
      id: `call_${calls++}`,
      type: "function",
      function: { name: call.function.name, arguments: writeJson(call.function.arguments as Json) },
    }));
    return { ...message, content: message.content === "" ? null : message.content, tool_calls: wired };
  });
}
