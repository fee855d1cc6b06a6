import { readFile, writeFile } from "node:fs/promises";
import { nearestName, OctavoError, systemProblem } from "@octavo/protocol/errors";
import type { ChatTarget } from "./chat-target.js";
import { speedLine } from "./speed-line.js";
import { type ChatFields, type AskedCall, type TerminalTurn, askStreaming } from "./ask-streaming.js";

/** Where a session reads lines and writes text; a terminal, or a test. */
export interface ChatTerminal {
  /** The next line of the user; undefined at the end of input. */
  ask(prompt: string): Promise<string | undefined>;
  /** The model's own words. */
  write(text: string): void;
  /** Everything else. */
  note(text: string): void;
  /** A signal that ends the answer in progress. */
  interruption(): { readonly signal: AbortSignal; readonly done: () => void };
}

const commands = ["help", "system", "tools", "set", "model", "save", "clear", "bye"];

const help = `/system TEXT     what the model is told first; without TEXT, nothing
/tools FILE      tools that the model may call, as OpenAI's JSON; without FILE, none
/set NAME=VALUE  a field of requests, such as temperature=0 or max_tokens=200
/model NAME      another model; the conversation stays
/save FILE       write the conversation as JSON
/clear           begin again
/bye             leave; so does Ctrl-D
A line that ends with \\ goes on; so does everything between two lines of """.
`;

/** A conversation in a terminal: turns, commands, tools whose results the user gives. */
export class ChatSession {
  #target: ChatTarget;
  readonly #terminal: ChatTerminal;
  readonly #open: (model: string) => Promise<ChatTarget>;
  #messages: TerminalTurn[] = [];
  #system: string | undefined;
  #fields: Record<string, unknown>;
  #tools: readonly unknown[] = [];

  constructor(
    target: ChatTarget,
    terminal: ChatTerminal,
    open: (model: string) => Promise<ChatTarget>,
    { system, fields = {} }: { readonly system?: string | undefined; readonly fields?: ChatFields } = {},
  ) {
    this.#target = target;
    this.#terminal = terminal;
    this.#open = open;
    this.#system = system;
    this.#fields = { ...fields };
  }

  get target(): ChatTarget {
    return this.#target;
  }

  get messages(): readonly TerminalTurn[] {
    return this.#system === undefined
      ? this.#messages
      : [{ role: "system", content: this.#system }, ...this.#messages];
  }

  /** Until the user leaves. */
  async run(): Promise<void> {
    for (;;) {
      const text = await this.#read();
      if (text === undefined) return;
      if (text.trim() === "") continue;
      try {
        if (text.startsWith("/")) {
          if (await this.#command(text)) return;
        } else await this.#say(text);
      } catch (thrown) {
        const error = OctavoError.from(thrown);
        this.#terminal.note(`${error.message} [${error.code}]\n`);
      }
    }
  }

  /** A line, or several: `\` at the end continues one, `"""` encloses many. */
  async #read(): Promise<string | undefined> {
    const first = await this.#terminal.ask("> ");
    if (first === undefined) return undefined;
    const lines = [first];
    if (first.trimStart().startsWith('"""')) {
      lines[0] = first.trimStart().slice(3);
      while (!(lines.at(-1) ?? "").trimEnd().endsWith('"""')) {
        const next = await this.#terminal.ask(". ");
        if (next === undefined) break;
        lines.push(next);
      }
      const text = lines.join("\n").trimEnd();
      return text.endsWith('"""') ? text.slice(0, -3).trim() : text;
    }
    while ((lines.at(-1) ?? "").endsWith("\\")) {
      lines.push(lines.pop()?.slice(0, -1) ?? "");
      const next = await this.#terminal.ask(". ");
      if (next === undefined) break;
      lines.push(next);
    }
    return lines.join("\n");
  }

  /** True when the user leaves. */
  async #command(line: string): Promise<boolean> {
    const [, name = "", rest = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(line.trim()) ?? [];
    switch (name) {
      case "bye":
      case "exit":
      case "quit":
        return true;
      case "help":
      case "?":
        this.#terminal.note(help);
        return false;
      case "system":
        this.#system = rest === "" ? undefined : rest;
        this.#terminal.note(rest === "" ? "no system message\n" : "the system message is set\n");
        return false;
      case "clear":
        this.#messages = [];
        this.#terminal.note("the conversation is empty\n");
        return false;
      case "set":
        this.#set(rest);
        return false;
      case "tools":
        this.#tools = rest === "" ? [] : await readTools(rest);
        this.#terminal.note(`${this.#tools.length} tools\n`);
        return false;
      case "save":
        await this.#save(rest);
        return false;
      case "model":
        await this.#changeModel(rest);
        return false;
      default: {
        const near = nearestName(name, commands);
        throw invalid(
          `there is no /${name}; ${near === undefined ? "/help lists the commands" : `did you mean /${near}?`}`,
        );
      }
    }
  }

  #set(text: string): void {
    const [, name, value] = /^([a-z_]+)\s*=\s*(.*)$/.exec(text) ?? [];
    if (name === undefined || value === undefined)
      throw invalid("/set takes NAME=VALUE, such as temperature=0");
    if (value === "") delete this.#fields[name];
    else {
      try {
        this.#fields[name] = JSON.parse(value) as unknown;
      } catch {
        this.#fields[name] = value;
      }
    }
    this.#terminal.note(value === "" ? `${name} is left out\n` : `${name} is ${value}\n`);
  }

  async #save(path: string): Promise<void> {
    if (path === "") throw invalid("/save takes the name of a file");
    const text = `${JSON.stringify({ model: this.#target.model, messages: this.messages }, null, 2)}\n`;
    await writeFile(path, text).catch((cause: unknown) => {
      throw new OctavoError("invalid_option", `${path} cannot be written: ${systemProblem(cause)}`, {
        cause,
      });
    });
    this.#terminal.note(`${this.messages.length} messages in ${path}\n`);
  }

  async #changeModel(name: string): Promise<void> {
    if (name === "") {
      this.#terminal.note(`${this.#target.model}\n`);
      return;
    }
    const next = await this.#open(name);
    await this.#target[Symbol.asyncDispose]();
    this.#target = next;
    this.#terminal.note(`${next.model}\n`);
  }

  async #say(text: string): Promise<void> {
    const before = this.#messages.length;
    this.#messages.push({ role: "user", content: text });
    try {
      let calls = await this.#answer();
      while (calls.length > 0) {
        for (const call of calls) this.#messages.push(await this.#resultOf(call));
        calls = await this.#answer();
      }
    } catch (error) {
      // A turn that got no answer is not part of the conversation.
      this.#messages.length = before;
      throw error;
    }
  }

  async #answer(): Promise<readonly AskedCall[]> {
    const { signal, done } = this.#terminal.interruption();
    let kind = "content";
    try {
      const tools = this.#tools.length > 0 ? { tools: this.#tools } : {};
      const answer = await askStreaming(
        this.#target,
        this.messages,
        { ...this.#fields, ...tools },
        (text, of) => {
          if (of !== kind) this.#terminal.note(of === "reasoning" ? "(thinking) " : "\n");
          kind = of;
          if (of === "content") this.#terminal.write(text);
          else this.#terminal.note(text);
        },
        signal,
      );
      this.#terminal.write("\n");
      this.#terminal.note(`${speedLine(answer)}\n`);
      this.#messages.push(answer.turn);
      return answer.turn.tool_calls ?? [];
    } finally {
      done();
    }
  }

  async #resultOf(call: AskedCall): Promise<TerminalTurn> {
    this.#terminal.note(`${call.function.name}(${call.function.arguments})\n`);
    const content = await this.#terminal.ask("result> ");
    if (content === undefined) throw invalid("the call got no result");
    return { role: "tool", content, tool_call_id: call.id };
  }
}

async function readTools(path: string): Promise<readonly unknown[]> {
  const text = await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    throw new OctavoError("invalid_option", `${path} cannot be read: ${systemProblem(cause)}`, { cause });
  });
  try {
    const tools: unknown = JSON.parse(text);
    if (Array.isArray(tools)) return tools;
  } catch {
    // Said below.
  }
  throw invalid(`${path}: expected a JSON list of tools, as OpenAI's API takes them`);
}

function invalid(message: string): OctavoError {
  return new OctavoError("invalid_option", message);
}
