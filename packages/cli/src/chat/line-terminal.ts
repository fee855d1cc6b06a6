import { appendFileSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { makeFolder } from "@octavo/protocol/make-folder";
import { style } from "../output/style.js";
import type { ChatTerminal } from "./chat-session.js";

const mostHistory = 1000;

function historyFile(): string {
  return join(process.env["XDG_STATE_HOME"] || join(homedir(), ".local", "state"), "octavo", "chat-history");
}

function readHistory(): string[] {
  try {
    return readFileSync(historyFile(), "utf8").split("\n").filter(Boolean).toReversed().slice(0, mostHistory);
  } catch {
    return [];
  }
}

/** Standard input and output: with line editing and history on a terminal, plain lines otherwise. */
export function lineTerminal(): ChatTerminal & { close(): void } {
  const isTerminal = process.stdin.isTTY && process.stderr.isTTY;
  const lines = createInterface({
    input: process.stdin,
    ...(isTerminal && { output: process.stderr, history: readHistory(), historySize: mostHistory }),
  });
  const waiting: string[] = [];
  let reader: ((line: string | undefined) => void) | undefined;
  let ended = false;
  let running: AbortController | undefined;
  lines.on("line", (line) => {
    if (reader === undefined) waiting.push(line);
    else reader(line);
    reader = undefined;
  });
  lines.on("close", () => {
    ended = true;
    reader?.(undefined);
  });
  const interrupt = (): void => {
    if (running === undefined) lines.close();
    else running.abort();
  };
  lines.on("SIGINT", interrupt);
  process.on("SIGINT", interrupt).on("SIGTERM", () => lines.close());
  return {
    async ask(prompt) {
      const line = waiting.shift();
      if (line !== undefined) return line;
      if (ended) return undefined;
      if (isTerminal) {
        lines.setPrompt(style.bold(prompt));
        lines.prompt();
      }
      const answer = await new Promise<string | undefined>((resolve) => (reader = resolve));
      if (isTerminal && answer !== undefined && answer.trim() !== "") remember(answer);
      return answer;
    },
    write: (text) => process.stdout.write(text),
    note: (text) => process.stderr.write(style.dim(text)),
    interruption() {
      const controller = new AbortController();
      running = controller;
      // The end of piped input does not end the answer to its last line.
      return { signal: controller.signal, done: () => (running = undefined) };
    },
    close: () => lines.close(),
  };
}

/** A history that cannot be kept is no reason to stop. */
function remember(line: string): void {
  try {
    makeFolder(dirname(historyFile()), 0o700);
    appendFileSync(historyFile(), `${line}\n`, { mode: 0o600 });
  } catch {
    // Nothing is lost but the line.
  }
}
