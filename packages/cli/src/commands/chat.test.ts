import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { encodeSseJson, sseDone } from "@octavo/protocol";
import { ChatSession, type ChatTerminal } from "../chat/chat-session.js";
import { openChatTarget } from "../chat/chat-target.js";
import { type AskedBody, sendModels, startScriptedServer } from "../testing/scripted-server.js";
import { runOctavo } from "../testing/run-octavo.js";

const { signal } = new AbortController();
const open = (target: string, model?: string) =>
  openChatTarget({ target, model, apiKey: undefined, maxModelLen: undefined, signal });

/** A terminal that types these lines. */
function typing(...lines: readonly string[]): ChatTerminal & { said: string; noted: string } {
  const waiting = [...lines];
  return {
    said: "",
    noted: "",
    ask: () => Promise.resolve(waiting.shift()),
    write(text) {
      this.said += text;
    },
    note(text) {
      this.noted += text;
    },
    interruption: () => ({ signal: new AbortController().signal, done: () => undefined }),
  };
}

test("a session shows reasoning apart, asks for tools' results, and drops turns without an answer", async () => {
  const asked: AskedBody[] = [];
  const server = await startScriptedServer((request, body, response) => {
    if (request.url === "/v1/models") return sendModels(response, "m");
    asked.push(body);
    if (asked.length === 3) {
      response.statusCode = 503;
      return response.end('{"error": {"message": "too busy"}}');
    }
    const delta =
      asked.length === 1
        ? { tool_calls: [{ index: 0, id: "call-1", function: { name: "add", arguments: '{"a": 1}' } }] }
        : { reasoning: "hm", content: "It is 3." };
    response.setHeader("content-type", "text/event-stream");
    return response.end(encodeSseJson({ choices: [{ index: 0, delta, finish_reason: "stop" }] }) + sseDone);
  });
  const folder = await mkdtemp(join(tmpdir(), "octavo-chat-"));
  try {
    const tools = [{ type: "function", function: { name: "add", description: "adds" } }];
    await writeFile(join(folder, "tools.json"), JSON.stringify(tools));
    const terminal = typing(
      "/system Add.",
      `/tools ${join(folder, "tools.json")}`,
      "/set max_tokens=9",
      "What is \\",
      "1 + 2?",
      "3",
      "And now?",
      `/tools ${folder}`,
      "/dance",
      "/hlep",
      `/save ${folder}`,
      "/set max_tokens=",
      `/save ${join(folder, "chat.json")}`,
      "/bye",
      "never read",
    );
    const session = new ChatSession(await open(server.url), terminal, () => open(server.url));
    await session.run();
    assert.equal(terminal.said, "\nIt is 3.\n");
    assert.match(terminal.noted, /add\(\{"a": 1\}\)/);
    assert.match(terminal.noted, /\(thinking\) hm/);
    assert.match(terminal.noted, /503: too busy \[invalid_request\]/);
    assert.match(terminal.noted, /cannot be read: it is a folder/);
    assert.match(terminal.noted, /there is no \/dance; \/help lists the commands/);
    assert.match(terminal.noted, /there is no \/hlep; did you mean \/help\?/);
    assert.match(terminal.noted, /cannot be written: it is a folder/);
    assert.match(terminal.noted, /the system message is set\n/);
    assert.match(terminal.noted, /max_tokens is 9\n[^]*max_tokens is left out\n/);
    const roles = ["system", "user", "assistant", "tool", "assistant"];
    const saved = JSON.parse(await readFile(join(folder, "chat.json"), "utf8")) as {
      messages: { role: string }[];
    };
    assert.deepEqual(
      saved.messages.map(({ role }) => role),
      roles,
      "the unanswered turn is gone",
    );
    const second = asked[1] as AskedBody & { tools?: unknown; max_tokens?: number };
    assert.deepEqual(second.tools, tools);
    assert.equal(second.max_tokens, 9);
    assert.deepEqual(
      second.messages?.map(({ content }) => content),
      ["Add.", "What is \n1 + 2?", "", "3"],
    );
  } finally {
    server.close();
    await rm(folder, { recursive: true });
  }
});

test("an answer that breaks off ends its line", async () => {
  const server = await startScriptedServer((request, _, response) => {
    if (request.url === "/v1/models") return sendModels(response, "m");
    response.setHeader("content-type", "text/event-stream");
    response.write(encodeSseJson({ choices: [{ index: 0, delta: { content: "It is" } }] }));
    return response.end(encodeSseJson({ error: { message: "out of memory" } }));
  });
  const terminal = typing("What is 1 + 2?", "/bye");
  const session = new ChatSession(await open(server.url), terminal, () => open(server.url));
  await session.run();
  assert.deepEqual(
    [terminal.said, terminal.noted],
    ["It is\n", "the server ended the answer: out of memory [invalid_request]\n"],
  );
  assert.deepEqual(session.messages, []);
  const ended = await runOctavo(["run", server.url, "What is 1 + 2?"]);
  assert.deepEqual([ended.code, ended.out], [1, "It is\n"]);
  server.close();
});

test("what cannot be talked to is named", async () => {
  const server = await startScriptedServer((_, __, response) => sendModels(response, "m"));
  await assert.rejects(open(server.url, "n"), {
    code: "model_not_found",
    message: /serves no model n; it serves m/,
  });
  server.close();
  await assert.rejects(open("http://127.0.0.1:9"), { code: "target_unreachable" });
  const silent = await runOctavo(["run", "octavo-mini"]);
  assert.equal(silent.code, 1);
  assert.match(silent.err, /nothing was asked.*\[invalid_option\]/);
});

test("octavo run and octavo chat answer on standard output, and say the rest elsewhere", async () => {
  const run = await runOctavo([
    "run",
    "octavo-mini",
    "Hello! Who are you?",
    "--temperature",
    "0",
    "--verbose",
  ]);
  assert.equal(run.code, 0, run.err);
  assert.ok(run.out.trim().length > 0);
  assert.match(run.err, /tokens\/s, first token \d+ ms/);
  const chat = await runOctavo(["chat", "--temperature", "0"], { input: "Hello! Who are you?\n" });
  assert.equal(chat.code, 0, chat.err);
  assert.equal(chat.out, run.out);
  assert.match(chat.err, /most of the first token: |slowest token /);
});
