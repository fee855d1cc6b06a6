import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { loadTest, type LoadTestOptions } from "./load-test.js";
import { renderLoadSummary } from "./report/table.js";

type Answer = (
  request: { readonly body: Record<string, unknown>; readonly count: number },
  response: ServerResponse,
) => void;

/** A server of a few lines that answers as told and counts what it was asked. */
async function withServer<T>(
  answer: Answer,
  use: (url: string, seen: Record<string, unknown>[]) => Promise<T>,
): Promise<T> {
  const seen: Record<string, unknown>[] = [];
  const server = createServer((request, response) => {
    void read(request).then((text) => {
      if (request.url === "/v1/models") {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ object: "list", data: [{ id: "tiny" }] }));
        return;
      }
      const body: Record<string, unknown> = JSON.parse(text);
      seen.push({ ...body, url: request.url });
      answer({ body, count: seen.length }, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const { port } = address;
  try {
    return await use(`http://127.0.0.1:${port}`, seen);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

function stream(
  response: ServerResponse,
  tokens: number,
  promptTokens: number,
  end = "data: [DONE]\n\n",
): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let i = 0; i < tokens; i++)
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, text: ` t${i}` }] })}\n\n`);
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: tokens,
    prompt_tokens_details: { cached_tokens: 3 },
  };
  response.write(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
  response.end(end);
}

const wellBehaved: Answer = ({ body }, response) =>
  stream(response, Number(body["max_tokens"]), String(body["prompt"]).split(" ").length * 2);

const options = (baseUrl: string, more: Partial<LoadTestOptions> = {}): LoadTestOptions => ({
  baseUrl,
  endpoint: "completions",
  model: undefined,
  apiKey: undefined,
  dataset: { kind: "random" },
  arrival: { kind: "poisson", requestsPerSecond: 500 },
  numRequests: 20,
  inputTokens: 40,
  outputTokens: 6,
  rangeRatio: 0,
  ignoreEos: true,
  temperature: 0,
  seed: 1,
  warmupRequests: 1,
  maxConcurrency: undefined,
  timeoutMs: 20_000,
  maxInputTokens: 1000,
  goodput: undefined,
  extraBody: {},
  ...more,
});

test("every request is sent once, counted and timed", async () => {
  await withServer(wellBehaved, async (url, seen) => {
    const report = await loadTest(options(url, { goodput: { ttft: 60_000 } }));
    const { summary } = report;
    assert.equal(seen.length, 1 + 1 + 20, "calibration, warm-up, run");
    assert.equal(report.target.model, "tiny");
    assert.equal(report.load.tokensPerWord, 2);
    assert.equal(summary.completed, 20);
    assert.equal(summary.outputTokens, 20 * 6);
    assert.equal(summary.promptTokens, 20 * 40);
    assert.equal(summary.cachedTokens, 20 * 3);
    assert.equal(summary.ttftMs?.count, 20);
    assert.equal(summary.interTokenMs?.count, 20 * 5);
    assert.equal(summary.maxGapMs?.count, 20);
    assert.equal(summary.goodput?.share.value, 1);
    assert.match(renderLoadSummary(summary, "tiny"), /time to first token, ms\s+[\d.]+/);
  });
});

test("a closed loop never has more requests in flight than clients", async () => {
  let now = 0;
  let most = 0;
  const slow: Answer = ({ body }, response) => {
    most = Math.max(most, ++now);
    setTimeout(() => {
      now--;
      stream(response, Number(body["max_tokens"]), 1);
    }, 5);
  };
  await withServer(slow, async (url) => {
    const { summary } = await loadTest(options(url, { arrival: { kind: "concurrency", concurrency: 3 } }));
    assert.equal(summary.completed, 20);
    assert.equal(most, 3);
    assert.equal(summary.maxConcurrency, 3);
  });
});

test("failures are distinguished and never counted as answers", async () => {
  const mixed: Answer = ({ count }, response) => {
    const kind = count <= 2 ? "ok" : ["ok", "429", "500", "cut", "event", "reset"][count % 6];
    if (kind === "429" || kind === "500") response.writeHead(Number(kind)).end('{"error":{"message":"no"}}');
    else if (kind === "cut") stream(response, 2, 1, "");
    else if (kind === "event") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end('data: {"error":{"message":"engine failed"}}\n\n');
    } else if (kind === "reset") response.destroy();
    else stream(response, 6, 1);
  };
  await withServer(mixed, async (url) => {
    const { summary } = await loadTest(
      options(url, { numRequests: 24, arrival: { kind: "concurrency", concurrency: 1 } }),
    );
    assert.deepEqual(summary.failures, { refused: 4, http: 4, truncated: 4, stream_error: 4, connection: 4 });
    assert.equal(summary.completed, 4);
    assert.equal(summary.failureExamples.stream_error, "engine failed");
    assert.match(renderLoadSummary(summary, "x"), /4 truncated/);
  });
});

test("a request that takes too long is a timeout", async () => {
  const hang: Answer = ({ count }, response) => {
    if (count <= 2) stream(response, 1, 1);
  };
  await withServer(hang, async (url) => {
    const { summary } = await loadTest(options(url, { numRequests: 2, timeoutMs: 150 }));
    assert.deepEqual(summary.failures, { timeout: 2 });
  });
});

test("chat requests carry messages; the trace's own times can be played", async () => {
  const folder = await mkdtemp(join(tmpdir(), "loadtest-"));
  try {
    const path = join(folder, "trace.jsonl");
    const rows = [0, 10, 20].map((timestamp) =>
      JSON.stringify({ timestamp, input_length: 5, output_length: 2, hash_ids: [] }),
    );
    await writeFile(path, rows.join("\n"));
    const answer: Answer = ({ body }, response) => stream(response, Number(body["max_tokens"]), 200);
    await withServer(answer, async (url, seen) => {
      const report = await loadTest(
        options(url, {
          endpoint: "chat",
          numRequests: 3,
          dataset: { kind: "trace", path, format: "mooncake" },
          arrival: { kind: "trace", speedup: 10 },
          extraBody: { min_tokens: 2 },
        }),
      );
      assert.equal(report.summary.completed, 3);
      assert.ok(
        seen.every((body) => body["url"] === "/v1/chat/completions" && Array.isArray(body["messages"])),
      );
      assert.ok(seen.every((body) => body["min_tokens"] === 2));
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("options that make no sense, and servers that are not there, are refused with a reason", async () => {
  const nowhere = "http://127.0.0.1:9";
  for (const [more, expected] of [
    [{ numRequests: 0 }, /numRequests/],
    [{ rangeRatio: 1 }, /rangeRatio/],
    [{ arrival: { kind: "poisson", requestsPerSecond: Number.NaN } }, /requestsPerSecond/],
    [{ baseUrl: "localhost:8000" }, /http/],
    [{}, /no server answers/],
  ] as const) {
    await assert.rejects(loadTest(options(nowhere, more)), (error: unknown) => {
      assert.ok(error instanceof OctavoError);
      assert.match(error.message, expected);
      return true;
    });
  }
});
