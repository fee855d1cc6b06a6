import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { pino } from "pino";
import { resolveServerConfig } from "./resolve-config.js";
import { createServer } from "./create-server.js";
import { textLine } from "./logging.js";
import { FakeLanguageModel } from "./testing/fake-language-model.js";

const logger = pino({ level: "silent" });

test("below a proxy's path, paths may have it or not", async () => {
  const config = { port: 0, rootPath: "/llm", apiKeys: ["k"] };
  await using server = createServer({ model: new FakeLanguageModel(), config, logger });
  const { url } = await server.listen();
  const statusOf = async (path: string, key = ""): Promise<number> =>
    (await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } })).status;
  assert.equal(await statusOf("/llm/v1/models", "k"), 200);
  assert.equal(await statusOf("/v1/models", "k"), 200);
  assert.equal(await statusOf("/llm/v1/models"), 401, "the key is asked for below the path too");
  assert.equal(await statusOf("/llmv1/models", "k"), 404);
  assert.equal(await statusOf("/llm/llm/v1/models", "k"), 404);
  assert.equal(await statusOf("/llm/health"), 200);
  const document = (await (await fetch(`${url}/llm/openapi.json`)).json()) as { servers: unknown };
  assert.deepEqual(document.servers, [{ url: "/llm" }]);
});

test("a path that is none is refused", () => {
  for (const rootPath of ["llm", "/", "/a//b", "/a?b", "/a b"])
    assert.throws(() => resolveServerConfig({ rootPath }), { code: "invalid_option" }, rootPath);
});

test("listens on a Unix domain socket", { skip: process.platform === "win32" }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "octavo-uds-"));
  try {
    const uds = join(folder, "octavo.sock");
    await using server = createServer({ model: new FakeLanguageModel(), config: { uds }, logger });
    const address = await server.listen();
    assert.equal(address.host, uds);
    const status = await new Promise((resolve, reject) => {
      const call = get({ socketPath: uds, path: "/health" }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      call.on("error", reject);
    });
    assert.equal(status, 200);
    await using second = createServer({ model: new FakeLanguageModel(), config: { uds }, logger });
    await assert.rejects(second.listen(), { code: "invalid_option", param: "uds" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the log as text holds what the JSON does, a line each", () => {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(textLine(line)) });
  log.info({ method: "POST", path: '/v1/"\u001b[31m', status: 200, slow: { cause: "prefill" } }, "request");
  log.error({ err: new TypeError("broken") }, "failed");
  assert.match(
    lines[0] ?? "",
    /^\d\d:\d\d:\d\d info {2}request method=POST path="\/v1\/\\"\\u001b\[31m" status=200 slow=\{"cause":"prefill"\}\n$/,
  );
  assert.match(lines[1] ?? "", /^\S+ error failed\n {2}TypeError: broken\n {6}at /);
});
