import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { pino } from "pino";
import { createServer } from "./create-server.js";
import { FakeLanguageModel } from "./testing/fake-language-model.js";

interface LogLine {
  readonly msg: string;
  readonly level: number;
  readonly method?: string;
  readonly path?: string;
  readonly status?: number;
  readonly code?: string;
  readonly requestId?: string;
  readonly fields?: readonly string[];
}

async function linesOf(
  level: string,
  talk: (url: string) => Promise<void>,
  model = new FakeLanguageModel(),
): Promise<readonly LogLine[]> {
  const lines: LogLine[] = [];
  const logger = pino({ level }, { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) });
  await using server = createServer({ model, config: { port: 0 }, logger });
  const { url } = await server.listen();
  await talk(url);
  await server.drain(1000);
  return lines;
}

function post(url: string, body: object): Promise<Response> {
  return fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-request-id": "r-1",
      authorization: "Bearer secret-key",
    },
    body: JSON.stringify(body),
  });
}

describe("the log of failures", () => {
  it("holds no error when a client's own deadline or a limit ended a request", async () => {
    const model = new FakeLanguageModel();
    const codes = ["deadline_exceeded", "overloaded", "engine_failed", "queue_full"] as const;
    const lines = await linesOf(
      "info",
      async (url) => {
        for (const code of codes) {
          model.engine.behaviour.refuseWith = new OctavoError(code, `refused: ${code}`);
          await post(url, { prompt: "a" });
        }
      },
      model,
    );
    const levels = lines.filter(({ msg }) => msg.startsWith("refused")).map(({ msg, level }) => [msg, level]);
    assert.deepEqual(levels, [
      ["refused: deadline_exceeded", 30],
      ["refused: overloaded", 30],
      ["refused: engine_failed", 50],
    ]);
  });
});

describe("the access log", () => {
  it("has one line per request with its id, status and code, and nothing of prompts or keys", async () => {
    const lines = await linesOf("info", async (url) => {
      await (await post(url, { prompt: "private words" })).text();
      await (await post(url, { prompt: "private words", n: 0 })).text();
      await (await fetch(`${url}/health`)).text();
    });
    assert.deepEqual(
      lines.map(({ method, path, status, code, requestId }) => [method, path, status, code, requestId]),
      [
        ["POST", "/v1/completions", 200, undefined, "r-1"],
        ["POST", "/v1/completions", 400, "invalid_request", "r-1"],
      ],
    );
    assert.doesNotMatch(JSON.stringify(lines), /private|secret/);
  });

  it("names ignored fields at debug level", async () => {
    const lines = await linesOf("debug", async (url) => {
      await (await post(url, { prompt: "a", unheard_of: 1 })).text();
    });
    const line = lines.find(({ msg }) => msg.includes("unknown request fields"));
    assert.deepEqual(line?.fields, ["unheard_of"]);
  });
});
