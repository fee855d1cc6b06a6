import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { FakeTarget } from "../testing/fake-target.js";
import { errorOf } from "../testing/read-answer.js";
import { sampleBody, startTestGateway, type TestGateway } from "../testing/test-gateway.js";
import { AdminListener } from "./admin-listener.js";

const path = "/v1/chat/completions";
const adminKey = "0123456789abcdef-admin";

/** Sends bytes as they are; resolves with all that comes back. */
async function raw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.setTimeout(2000, () => socket.destroy());
    socket.on("data", (bytes) => {
      answer += bytes.toString();
      if (answer.includes("\r\n\r\n{") && answer.endsWith("}")) socket.destroy();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(answer));
  });
}

describe("bad input to the gateway", () => {
  let target: FakeTarget;
  let gateway: TestGateway;
  let folder: string;
  let log: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "octavo-gateway-log-"));
    log = join(folder, "access.log");
    target = await FakeTarget.start();
    gateway = await startTestGateway({
      targets: {
        one: { provider: "openai-compatible", url: target.url, api_key: "sk-upstream-secret", models: ["m"] },
      },
      limits: { max_body: "64KiB", headers_timeout: "300ms", body_timeout: "200ms" },
      access_log: log,
    });
  });
  after(async () => {
    await gateway[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  const refused = async (answer: Promise<Response>): Promise<readonly [number, string | null]> => {
    const response = await answer;
    assert.equal(typeof errorOf(await response.json())["message"], "string");
    return [response.status, response.headers.get("x-octavo-error-code")];
  };

  it("is refused by name, and reaches no target", async () => {
    const post: TestGateway["post"] = (...args) => gateway.post(...args);
    const numBefore = target.calls.length;
    assert.deepEqual(await refused(post(path, "{")), [400, "invalid_json"]);
    assert.deepEqual(await refused(post(path, "[]")), [400, "invalid_json"]);
    assert.deepEqual(await refused(post(path, "")), [400, "invalid_json"]);
    assert.deepEqual(await refused(post(path, { messages: [] })), [400, "invalid_request"]);
    assert.deepEqual(await refused(post(path, { ...sampleBody, stream: "yes" })), [400, "invalid_request"]);
    assert.deepEqual(await refused(post(path, { ...sampleBody, model: "other" })), [404, "model_not_found"]);
    assert.deepEqual(await refused(post(path, { ...sampleBody, model: "__proto__" })), [
      404,
      "model_not_found",
    ]);
    assert.deepEqual(await refused(post(path, { ...sampleBody, model: "constructor" })), [
      404,
      "model_not_found",
    ]);
    assert.deepEqual(await refused(post(path, sampleBody, { "content-type": "text/plain" })), [
      415,
      "unsupported_media_type",
    ]);
    assert.deepEqual(await refused(post("/v1/none", sampleBody)), [404, "not_found"]);
    assert.deepEqual(await refused(fetch(gateway.url + path)), [405, "method_not_allowed"]);
    assert.equal(target.calls.length, numBefore);
  });

  it("a body that is too large is refused, announced or not, and before it is read", async () => {
    const large = JSON.stringify({ ...sampleBody, padding: "x".repeat(100_000) });
    assert.deepEqual(await refused(gateway.post(path, large)), [413, "payload_too_large"]);
    const announced = await raw(
      gateway.url,
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 104857600\r\n\r\n{`,
    );
    assert.match(announced, /^HTTP\/1\.1 413 [\s\S]*payload_too_large/);
    const chunked = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n10000\r\n${"x".repeat(65_536)}\r\n10000\r\n${"x".repeat(65_536)}\r\n`;
    assert.match(await raw(gateway.url, chunked), /^HTTP\/1\.1 413 /);
  });

  it("bodies of all requests together are bounded, and there is room again when they are over", async () => {
    await using bounded = await startTestGateway({
      targets: { one: { provider: "ollama", url: target.url, models: ["m"], probe: { path: "off" } } },
      limits: {
        max_body: "64KiB",
        max_body_memory: "96KiB",
        body_timeout: "300ms",
        headers_timeout: "300ms",
      },
    });
    const body = JSON.stringify({ ...sampleBody, padding: "x".repeat(60_000) });
    const { port } = new URL(bounded.url);
    const unfinished = connect(Number(port), "127.0.0.1", () =>
      unfinished.write(
        `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 65000\r\n\r\n${body}`,
      ),
    );
    unfinished.on("error", () => undefined);
    let answer: readonly [number, string | null];
    do
      answer = await bounded.post(path, body).then(async (response) => {
        await response.text();
        return [response.status, response.headers.get("x-octavo-error-code")] as const;
      });
    while (answer[0] === 200);
    assert.deepEqual(answer, [503, "overloaded"]);
    unfinished.destroy();
    do answer = [(await bounded.post(path, body)).status, null];
    while (answer[0] === 503);
    assert.equal(answer[0], 200);
  });

  it("a body that is not UTF-8 is refused: readers put different characters in its place", async () => {
    const [begin, end] = JSON.stringify({ ...sampleBody, user: "|" }).split("|");
    const body = Buffer.concat([Buffer.from(begin ?? ""), Buffer.from([0xc3, 0x28]), Buffer.from(end ?? "")]);
    const headers = { "content-type": "application/json" };
    assert.deepEqual(await refused(fetch(gateway.url + path, { method: "POST", headers, body })), [
      400,
      "invalid_json",
    ]);
  });

  it("a compressed body is refused without being unpacked", async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000, 32));
    const response = await fetch(gateway.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
      body: bomb,
    });
    assert.deepEqual(
      [response.status, response.headers.get("x-octavo-error-code")],
      [415, "unsupported_media_type"],
    );
    await response.text();
  });

  it("lengths that contradict each other, and floods of headers, end the connection with an error", async () => {
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
    const seen = target.calls.length;
    for (const lengths of [
      "content-length: 5\r\ncontent-length: 6\r\n",
      "content-length: 5\r\ntransfer-encoding: chunked\r\n",
      "transfer-encoding: chunked, identity\r\n",
      "content-length: +5\r\n",
      "content-length : 5\r\n",
    ])
      assert.match(
        await raw(gateway.url, `${head}${lengths}\r\n0\r\n\r\n`),
        /^HTTP\/1\.1 400 [\s\S]*connection: close/i,
        lengths,
      );
    const flood = `x-a: ${"y".repeat(100)}\r\n`.repeat(400);
    assert.match(await raw(gateway.url, `${head}${flood}\r\n`), /^HTTP\/1\.1 431 [\s\S]*headers_too_large/);
    assert.equal(target.calls.length, seen);
  });

  it("a body that never comes is not waited for", async () => {
    const answer = await raw(
      gateway.url,
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{`,
    );
    assert.match(answer, /^HTTP\/1\.1 408 [\s\S]*request_timeout/);
  });

  it("a body that two readers would read differently reaches no target where a stage judged it", async () => {
    await using judged = await startTestGateway({
      targets: { one: { provider: "ollama", url: target.url, models: ["m"], probe: { path: "off" } } },
      rate_limits: { max_tokens: 10 },
      guardrails: { rules: [{ name: "words", check: "blocklist", words: ["forbidden"], action: "block" }] },
    });
    const seen = target.calls.length;
    const messages = (content: string): string => `[{"role":"user","content":"${content}"}]`;
    for (const text of [
      `{"model":"m","messages":${messages("forbidden")},"messages":${messages("hello")}}`,
      `{"model":"m","messages":[{"role":"user","content":"forbidden","content":"hello"}]}`,
      `{"model":"m","messages":${messages("hello")},"Messages":${messages("forbidden")}}`,
      `{"model":"m","messages":${messages("hello")},"max_tokens":100000,"max_token\\u0073":9}`,
      `{"model":"m","messages":${messages("hello")},"MAX_TOKENS":100000}`,
    ])
      assert.equal((await refused(judged.post(path, text)))[0], 400, text);
    assert.equal(target.calls.length, seen);
    const [status, code] = await refused(
      judged.post(path, `{"model":"m","messages":${messages("forbidden")}}`),
    );
    assert.deepEqual([status, code], [400, "guardrail_blocked"]);
    assert.equal((await judged.post(path, `{"model":"m","messages":${messages("hello")}}`)).status, 200);
  });

  it("a target's address is never the request's to choose", async () => {
    await using other = await FakeTarget.start();
    const response = await gateway.post(
      path,
      { ...sampleBody, base_url: other.url, api_base: other.url, custom_host: other.url },
      {
        host: new URL(other.url).host,
        "x-portkey-custom-host": other.url,
        "x-octavo-target": other.url,
        "x-forwarded-host": other.url,
      },
    );
    assert.equal(response.status, 200);
    assert.equal(other.calls.length, 0);
  });

  it("no key, prompt or answer gets into the log", async () => {
    const secret = {
      authorization: "Bearer sk-client-secret",
      "x-api-key": "sk-client-secret",
      cookie: "session=sk-client-secret",
    };
    await (
      await gateway.post(
        path,
        { ...sampleBody, messages: [{ role: "user", content: "a private prompt" }] },
        secret,
      )
    ).text();
    let text = "";
    while (!text.includes('"status":200')) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      text = await readFile(log, "utf8");
    }
    assert.doesNotMatch(text, /secret|private prompt|quick brown fox/);
    const line = JSON.parse(text.trim().split("\n").at(-1) ?? "");
    assert.deepEqual([line.model, line.target, line.prompt_tokens], ["m", "one", 12]);
  });

  it("the admin port gives nothing without its key", async () => {
    let reloads = 0;
    const admin = new AdminListener({
      gateway: gateway.gateway,
      admin: { host: "127.0.0.1", port: 0, key: adminKey },
      reload: async () => {
        reloads += 1;
      },
    });
    const { url } = await admin.listen();
    try {
      for (const authorization of [
        "",
        "Bearer wrong",
        `Basic ${adminKey}`,
        `bearer ${adminKey}`,
        `Bearer ${adminKey}x`,
      ]) {
        const response = await fetch(`${url}/metrics`, { headers: { authorization } });
        assert.deepEqual(
          [response.status, response.headers.get("x-octavo-error-code")],
          [401, "unauthorized"],
          authorization,
        );
        await response.text();
      }
      const authorization = `Bearer ${adminKey}`;
      const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization } })).text();
      assert.match(
        metrics,
        /octavo_gateway_requests_total\{route="m",operation="chat",status="200",code="ok"\} /,
      );
      const targets = await (await fetch(`${url}/admin/targets`, { headers: { authorization } })).text();
      assert.match(targets, /"name":"one","provider":"openai-compatible"/);
      assert.doesNotMatch(targets, /sk-upstream/);
      assert.equal(
        (await fetch(`${url}/admin/reload`, { method: "POST", headers: { authorization } })).status,
        200,
      );
      assert.equal(reloads, 1);
      assert.equal((await fetch(`${url}/admin/none`, { headers: { authorization } })).status, 404);
      assert.equal((await fetch(gateway.url + "/metrics")).status, 404, "not on the public port");
      for (const odd of ["//", "/admin/%zz", "/admin/keys/%ff", "*", "http://[/", "/admin/../metrics"]) {
        const head = (method: string, headers: string): string =>
          `${method} ${odd} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`;
        assert.match(await raw(url, head("GET", "")), /^HTTP\/1\.1 (?:400|401) /, odd);
        assert.match(
          await raw(url, head("DELETE", `authorization: ${authorization}\r\n`)),
          /^HTTP\/1\.1 4\d\d /,
          odd,
        );
      }
    } finally {
      await admin.close();
    }
  });
});
