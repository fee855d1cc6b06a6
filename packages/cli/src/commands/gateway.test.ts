import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, describe, it } from "node:test";
import OpenAI from "openai";
import { runOctavo, startOctavo, type RunningOctavo } from "../testing/run-octavo.js";

interface Started {
  readonly url: string;
  readonly process: RunningOctavo;
}

/** Starts `octavo` and resolves with the first address that it prints. */
async function start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Started> {
  const process = startOctavo(args, { env });
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    for (const output of [process.child.stdout, process.child.stderr])
      output.on("data", (text: string) => {
        said += text;
        const found = /http:\/\/[\d.]+:\d+/.exec(said);
        if (found !== null) resolve(found[0]);
      });
    void process.ended.then(({ code, err }) => reject(new TypeError(`octavo ended with ${code}: ${err}`)));
  });
  return { url, process };
}

const serve = (): Promise<Started> =>
  start(["serve", "--port", "0", "--threads", "1", "--max-model-len", "512"]);

/** What the test reads of a line of the access log. */
interface LogLine {
  readonly operation?: string;
  readonly target: string;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly predicted_cached_tokens: number;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return typeof address === "object" && address !== null ? address.port : 0;
}

describe("octavo gateway", () => {
  let folder: string;
  let path: string;
  let replicas: Started[];
  let gateway: Started;
  let client: OpenAI;

  const writeConfig = async (strategy: string): Promise<void> => {
    const targets = replicas.map(
      ({ url }, index) => `  replica-${index}: { provider: octavo, url: "${url}", models: [octavo-mini] }`,
    );
    await writeFile(
      path,
      `version: 1
listen: { port: 0 }
admin: { port: 0, key: "\${ADMIN_KEY}" }
access_log: "off"
targets:
${targets.join("\n")}
routes:
  mini: { models: [octavo-mini], strategy: ${strategy}, targets: [replica-0, replica-1] }
`,
    );
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "octavo-gateway-"));
    path = join(folder, "gateway.yaml");
    replicas = await Promise.all([serve(), serve()]);
    await writeConfig("round_robin");
    gateway = await start(["gateway", "--config", path], { ADMIN_KEY: "0123456789abcdef" });
    client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: "none", maxRetries: 0 });
  });

  after(async () => {
    gateway.process.child.kill("SIGTERM");
    const { code, err } = await gateway.process.ended;
    for (const { process } of replicas) process.child.kill("SIGKILL");
    await rm(folder, { recursive: true });
    assert.equal(code, 0, err);
  });

  const ask = async (
    fields: object,
    onChunk: (numChunks: number, target: string | null) => void = () => undefined,
  ): Promise<{ readonly text: string; readonly account: Readonly<Record<string, unknown>> }> => {
    const { data, response } = await client.chat.completions
      .create({
        model: "octavo-mini",
        messages: [{ role: "user", content: "Count from one to one hundred." }],
        max_tokens: 200,
        stream: true,
        ...fields,
      } as OpenAI.ChatCompletionCreateParamsStreaming)
      .withResponse();
    let text = "";
    let numChunks = 0;
    let account = {};
    for await (const chunk of data) {
      text += chunk.choices[0]?.delta.content ?? "";
      numChunks += 1;
      onChunk(numChunks, response.headers.get("x-octavo-target"));
      const noted = (chunk as { octavo?: object }).octavo;
      if (noted !== undefined) account = noted;
      assert.ok(!("token_ids" in (chunk.choices[0] ?? {})), "token ids that nobody asked for stay inside");
    }
    return { text, account };
  };

  it("kill -9 of the replica inside a stream: another goes on, and the text is what one would have sent", async () => {
    for (const sampling of [
      { temperature: 0, ignore_eos: true },
      { temperature: 1, seed: 7, ignore_eos: true },
    ]) {
      const whole = await ask(sampling);
      assert.ok(whole.text.length > 100, whole.text);
      let killed: number | undefined;
      const saved = await ask(sampling, (numChunks, target) => {
        if (numChunks !== 20 || killed !== undefined) return;
        killed = Number(target?.slice(-1));
        replicas[killed]?.process.child.kill("SIGKILL");
      });
      assert.equal(saved.text, whole.text);
      assert.equal(saved.account["fallback"], "resume");
      assert.equal(saved.account["target"], `replica-${1 - (killed ?? 0)}`);
      assert.ok(killed !== undefined);
      replicas[killed] = await serve();
      await writeConfig("round_robin");
      gateway.process.child.kill("SIGHUP");
      await new Promise((resolve) => gateway.process.child.stderr.once("data", resolve));
    }
  });

  it("follows a new configuration without a restart, and refuses a wrong one with its line", async () => {
    const strategyOf = async (): Promise<string | null> => {
      const answer = await client.chat.completions
        .create({ model: "octavo-mini", messages: [{ role: "user", content: "hi" }], max_tokens: 2 })
        .withResponse();
      return answer.response.headers.get("x-octavo-routing-strategy");
    };
    const reload = async (): Promise<string> => {
      const said = new Promise<string>((resolve) =>
        gateway.process.child.stderr.once("data", (text: string) => resolve(text)),
      );
      gateway.process.child.kill("SIGHUP");
      return said;
    };
    await writeConfig("least_outstanding");
    assert.match(await reload(), /configuration reloaded/);
    assert.equal(await strategyOf(), "least_outstanding");
    await writeConfig("quickest");
    assert.match(await reload(), /gateway\.yaml:9:\d+: routes\.mini\.strategy/);
    assert.equal(await strategyOf(), "least_outstanding");
  });

  it("prefix_aware: a conversation stays where its prefix is cached, and what is predicted is what the engine had", async () => {
    const log = join(folder, "calls.log");
    const config = join(folder, "prefix.yaml");
    const model = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));
    const targets = replicas.map(
      ({ url }, index) => `  replica-${index}: { provider: octavo, url: "${url}", models: [octavo-mini] }`,
    );
    await writeFile(
      config,
      `version: 1
listen: { port: 0 }
access_log: ${log}
targets:
${targets.join("\n")}
routes:
  mini:
    models: [octavo-mini]
    strategy: prefix_aware
    prefix: { tokenizer: ${model} }
    targets: [replica-0, replica-1]
`,
    );
    const own = await start(["gateway", "--config", config]);
    const caller = new OpenAI({ baseURL: `${own.url}/v1`, apiKey: "none", maxRetries: 0 });
    for (const topic of ["ships", "clouds", "bread"]) {
      const messages: OpenAI.ChatCompletionMessageParam[] = [
        { role: "system", content: `You know all about ${topic}, and answer in short sentences. `.repeat(4) },
      ];
      for (let turn = 0; turn < 3; turn += 1) {
        messages.push({ role: "user", content: `Question ${turn}: what else should I know?` });
        const { choices } = await caller.chat.completions.create({
          model: "octavo-mini",
          messages,
          max_tokens: 12,
        });
        messages.push({ role: "assistant", content: choices[0]?.message.content ?? "" });
      }
    }
    own.process.child.kill("SIGTERM");
    await own.process.ended;
    const lines = (await readFile(log, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as LogLine)
      .filter(({ operation }) => operation === "chat");
    assert.equal(lines.length, 9);
    for (const [call, line] of lines.entries()) {
      if (call % 3 > 0) assert.equal(line.target, lines[call - 1]?.target, "a conversation stays");
      if (call % 3 > 0) assert.ok(line.cached_tokens > 48, `${line.cached_tokens} of ${line.prompt_tokens}`);
      // the answer's own blocks are cached too; the gateway sees prompts alone, so it may expect fewer, by what was answered
      const surplus = line.cached_tokens - line.predicted_cached_tokens;
      assert.ok(
        surplus >= 0 && surplus <= 32,
        `predicted ${line.predicted_cached_tokens}, had ${line.cached_tokens}`,
      );
    }
  });

  it("--workers: processes share the port, follow SIGHUP together, are replaced when they die, and end together", async () => {
    await writeConfig("weighted");
    const env = { ADMIN_KEY: "0123456789abcdef" };
    const port = await freePort();
    await writeFile(path, (await readFile(path, "utf8")).replace("port: 0", `port: ${port}`));
    const started = startOctavo(["gateway", "--config", path, "--workers", "2"], { env });
    let said = "";
    const heard = async (pattern: RegExp, times: number): Promise<void> => {
      while ((said.match(pattern)?.length ?? 0) < times) {
        assert.equal(started.child.exitCode, null, said);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    for (const stream of [started.child.stdout, started.child.stderr])
      stream.on("data", (text: string) => (said += text));
    await heard(/worker \d: http/g, 2);
    const models = await (await fetch(`http://127.0.0.1:${port}/v1/models`)).text();
    assert.match(models, /"id":"octavo-mini"/);
    const [, metricsUrl = ""] = /metrics of all workers at (\S+)/.exec(said) ?? [];
    const numCounted = async (): Promise<number> => {
      const headers = { authorization: "Bearer 0123456789abcdef" };
      const text = await (await fetch(metricsUrl, { headers })).text();
      return [...text.matchAll(/^octavo_gateway_requests_total\{.*\} (\d+)$/gm)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
    };
    assert.equal((await fetch(metricsUrl)).status, 401);
    for (let call = 0; call < 8; call += 1)
      // on a connection of its own, so that both workers have some
      await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", connection: "close" },
        body: JSON.stringify({ model: "no-such-model", messages: [] }),
      });
    while ((await numCounted()) < 8) await new Promise((resolve) => setTimeout(resolve, 20));
    started.child.kill("SIGHUP");
    await heard(/worker \d: configuration reloaded/g, 2);
    const [worker = ""] = (
      await readFile(`/proc/${started.child.pid}/task/${started.child.pid}/children`, "utf8")
    ).split(" ");
    process.kill(Number(worker), "SIGKILL");
    await heard(/worker \d: http/g, 3);
    assert.equal(await numCounted(), 8, "what the worker counted that was killed is not lost");
    assert.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200);
    started.child.kill("SIGTERM");
    assert.equal((await started.ended).code, 0, said);
  });

  it("check says what a configuration means, or where it is wrong", async () => {
    await writeConfig("weighted");
    const env = { ADMIN_KEY: "0123456789abcdef" };
    const valid = await runOctavo(["gateway", "check", "--config", path], { env });
    assert.equal(valid.code, 0, valid.err);
    assert.match(valid.out, /route mini: octavo-mini → weighted over replica-0, replica-1/);
    const wrong = await runOctavo(["gateway", "check", "--config", path]);
    assert.equal(wrong.code, 1);
    assert.match(wrong.err, /gateway\.yaml:3:24: admin\.key: the environment variable ADMIN_KEY is not set/);
  });
});
