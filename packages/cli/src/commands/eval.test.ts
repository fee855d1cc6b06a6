import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { EvalReport } from "@octavo/evals";
import {
  type ScriptedServer,
  sendModels,
  startScriptedServer,
  streamAnswer,
} from "../testing/scripted-server.js";
import { type EndedOctavo, type RunningOctavo, startOctavo } from "../testing/run-octavo.js";

const start = (...args: readonly string[]): RunningOctavo => startOctavo(["eval", ...args], { cwd: folder });
const run = (...args: readonly string[]): Promise<EndedOctavo> => start(...args).ended;

/** A server that answers the expected word to all but every tenth question, after `delayMs`. */
interface Scripted {
  readonly url: string;
  delayMs: number;
  numAnswers: number;
}

let folder = "";
let server: ScriptedServer;
const scripted: Scripted = { url: "", delayMs: 0, numAnswers: 0 };
const numCases = 60;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-eval-"));
  server = await startScriptedServer(({ url }, { messages }, response) => {
    if (url === "/v1/models") {
      sendModels(response, "scripted");
      return;
    }
    const number = Number(/\d+/.exec(messages?.at(-1)?.content ?? "")?.[0]);
    scripted.numAnswers += 1;
    setTimeout(
      () => streamAnswer(response, "scripted", number % 10 === 0 ? "another" : `word ${number}`),
      scripted.delayMs,
    );
  });
  Object.assign(scripted, { url: server.url });
  const cases = Array.from({ length: numCases }, (_, index) =>
    JSON.stringify({ id: `case-${index}`, input: `Say word ${index}`, expected: `word ${index}` }),
  );
  await writeFile(join(folder, "golden.jsonl"), `${cases.join("\n")}\n`);
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const golden = (): readonly string[] => [
  "--target",
  scripted.url,
  "--dataset",
  "golden.jsonl",
  "--evaluator",
  "exact_match",
];

test("a run scores, prints a table, and writes every output", async () => {
  const files = ["--html", "r.html", "--json", "r.json", "--junit", "r.xml", "--markdown", "r.md"];
  const ended = await run("run", ...golden(), "--baseline", scripted.url, ...files);
  assert.equal(ended.code, 0, ended.err);
  assert.match(ended.out, /exact_match +candidate +90\.0 % +79\.9 to 95\.3 % +60 +0 +0/);
  const report = JSON.parse(await readFile(join(folder, "r.json"), "utf8")) as EvalReport;
  assert.equal(report.numCases, numCases);
  assert.deepEqual(
    report.targets.map(({ name, model }) => [name, model]),
    [
      ["baseline", "scripted"],
      ["candidate", "scripted"],
    ],
  );
  assert.match(await readFile(join(folder, "r.html"), "utf8"), /^<!doctype html>/);
  assert.match(await readFile(join(folder, "r.xml"), "utf8"), /^<\?xml/);
  const viewed = await run("view", "r.json", "--markdown", "-");
  assert.equal(viewed.out, await readFile(join(folder, "r.md"), "utf8"));
});

test("a run sends each score to a collector, and says what did not arrive", async () => {
  const records: { readonly eventName: string; readonly attributes: readonly { readonly key: string }[] }[] =
    [];
  const collector = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      assert.equal(request.url, "/v1/logs");
      const { resourceLogs } = JSON.parse(body) as {
        resourceLogs: { scopeLogs: { logRecords: typeof records }[] }[];
      };
      records.push(
        ...resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords)),
      );
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  collector.listen(0, "127.0.0.1");
  await once(collector, "listening");
  const { port } = collector.address() as AddressInfo;
  const ended = await run("run", ...golden(), "--otlp-endpoint", `http://127.0.0.1:${port}`);
  collector.close();
  assert.equal(ended.code, 0, ended.err);
  assert.equal(records.length, numCases);
  const labels = { pass: 0, fail: 0 };
  for (const { eventName, attributes } of records) {
    assert.equal(eventName, "gen_ai.evaluation.result");
    const values = new Map(attributes.map((attribute) => [attribute.key, JSON.stringify(attribute)]));
    assert.match(values.get("gen_ai.evaluation.name") ?? "", /"exact_match"/);
    assert.match(values.get("gen_ai.response.id") ?? "", /"stringValue":"x"/);
    const label = values.get("gen_ai.evaluation.score.label") ?? "";
    labels[label.includes('"pass"') ? "pass" : "fail"] += 1;
  }
  assert.deepEqual(labels, { pass: 54, fail: 6 });
  const away = await run("run", ...golden(), "--otlp-endpoint", "http://127.0.0.1:9");
  assert.equal(away.code, 0, "a collector that is away changes no verdict");
  assert.match(away.err, /60 scores did not reach the collector/);
  assert.equal((await run("run", ...golden(), "--otlp-endpoint", "localhost:4318")).code, 4);
});

test("exit codes tell how it ended apart", async () => {
  const gate = async (text: string, ...flags: readonly string[]): Promise<EndedOctavo> => {
    await writeFile(join(folder, "eval.yaml"), text);
    return run("gate", "--config", "eval.yaml", ...flags);
  };
  const yaml = (expectation: string, extra = "", url = scripted.url): string =>
    `version: 1\ntargets: {candidate: {base_url: "${url}"}}\ndatasets: {golden: {path: golden.jsonl}}\nevaluators: [exact_match]\n${extra}health:\n  quality:\n    - ${expectation}\n`;
  const passes = yaml("pass_rate(exact_match) >= 0.7");
  assert.equal((await gate(passes)).code, 0);
  assert.equal((await gate(yaml("pass_rate(exact_match) >= 0.99"))).code, 2);
  const open = await gate(yaml("pass_rate(exact_match) >= 0.9"));
  assert.deepEqual([open.code, /^inconclusive: /m.test(open.out)], [3, true]);
  const wrong = await gate(yaml("pass_rate(exact_match) >= 97"));
  assert.equal(wrong.code, 4);
  assert.match(wrong.err, /eval\.yaml:7:7: health\.quality\[0\]: .*did you mean 97%\? \[invalid_option\]/);
  await writeFile(join(folder, "torn.jsonl"), '{"id": "a", "input": "x"\n');
  const data = await gate(passes.replace("golden.jsonl", "torn.jsonl"));
  assert.equal(data.code, 5, data.err);
  assert.equal((await gate(yaml("pass_rate(exact_match) >= 0.7", "", "http://127.0.0.1:9"))).code, 6);
  scripted.delayMs = 200;
  const late = await gate(passes.replace("version: 1", "version: 1\ntimeout: 0.5s\nconcurrency: 1"));
  scripted.delayMs = 0;
  assert.equal(late.code, 7, late.err);
  const judged = await gate(
    yaml("pass_rate(is_helpful) >= 0.5", 'judge: {base_url: "http://127.0.0.1:9", model: none}\n')
      .replace("[exact_match]", "[exact_match, is_helpful]")
      .replace("golden.jsonl}", "golden.jsonl, limit: 2}"),
  );
  assert.equal(judged.code, 8, judged.out + judged.err);
  const none = await gate(yaml("pass_rate(json_schema) >= 0.5").replace("[exact_match]", "[json_schema]"));
  assert.deepEqual([none.code, /all 60 were skipped/.test(none.out)], [5, true]);
  const skipped = await gate(`${passes}when: {paths: ["prompts/**"]}\n`, "--changed-files", "README.md");
  assert.deepEqual([skipped.code, /skipped: /.test(skipped.out)], [0, true]);
  assert.equal(
    (await gate(`${passes}when: {paths: ["prompts/**"]}\n`, "--changed-files", "prompts/a.md")).code,
    0,
  );
  assert.equal((await gate(passes, "--no-such-flag")).code, 4);
  assert.equal((await gate(passes, "--validate")).out, "eval.yaml: 1 expectations, 0 checks\n");
});

test("a run that SIGINT ended resumes from its journal", async () => {
  scripted.delayMs = 40;
  const asked = scripted.numAnswers;
  const flags = [...golden(), "--concurrency", "4", "--journal", "run.jsonl"];
  const first = start("run", ...flags);
  while (scripted.numAnswers < asked + 24) await new Promise((resolve) => setTimeout(resolve, 10));
  first.child.kill("SIGINT");
  const ended = await first.ended;
  assert.equal(ended.code, 130, ended.err);
  assert.match(ended.err, /the same command resumes from run\.jsonl/);
  scripted.delayMs = 0;
  const askedBefore = scripted.numAnswers;
  const second = await run("run", ...flags);
  assert.equal(second.code, 0, second.err);
  assert.match(second.out, /exact_match +candidate +90\.0 %/);
  assert.ok(scripted.numAnswers - askedBefore <= numCases - 16, "what the journal had was not asked again");
  const other = await run("run", ...golden(), "--journal", "run.jsonl", "--max-tokens", "5");
  assert.equal(other.code, 4);
});

test("what cannot be meant is refused before anybody is asked", async () => {
  const asked = scripted.numAnswers;
  const refused = [
    [["run", "--dataset", "golden.jsonl"], /--target/],
    [["run", "--target", scripted.url], /--dataset/],
    [["run", "--target", scripted.url, "--dataset", "golden.jsonl"], /--evaluator: nothing would be scored/],
    [["run", ...golden(), "--evaluator", "exactmatch"], /no evaluator "exactmatch"/],
    [["run", ...golden(), "--evaluator", "{bad"], /--evaluator: not JSON/],
    [["run", ...golden(), "--api-key-env", "NO_SUCH_KEY_HERE"], /the environment has no NO_SUCH_KEY_HERE/],
    [["run", ...golden(), "--timeout", "soon"], /timeout: expected a time/],
    [["check", "nothing", "--target", scripted.url], /there is no check "nothing"/],
    [["check", "tail", "--target", scripted.url, "--dataset", "golden.jsonl", "--set", "nonsense=1"], /tail/],
    [["gate", "--config", "none.yaml"], /cannot be read: there is no such file/],
    [["view", "golden.jsonl"], /golden\.jsonl/],
  ] as const;
  const endings = await Promise.all(refused.map(([args]) => run(...args)));
  for (const [index, [args, message]] of refused.entries()) {
    const ended = endings[index];
    assert.ok(ended !== undefined);
    assert.ok(ended.code === 4 || ended.code === 5, `${args.join(" ")}: ${ended.code} ${ended.err}`);
    assert.match(ended.err, message);
  }
  assert.equal(scripted.numAnswers, asked);
});

test("lists name evaluators, checks, formats and exit codes", async () => {
  assert.match((await run("list")).out, /^exact_match +pass_fail/m);
  assert.match((await run("list", "checks")).out, /^tenant-fairness /m);
  assert.match((await run("list", "datasets")).out, /^mmlu-pro$/m);
  const codes = JSON.parse((await run("list", "exit-codes", "--json")).out) as {
    code: number;
    outcome: string;
  }[];
  assert.deepEqual(
    codes.find(({ outcome }) => outcome === "judge_broken"),
    { code: 8, outcome: "judge_broken" },
  );
});

test("a check judges recorded spans", async () => {
  const span = (index: number): string =>
    JSON.stringify({
      name: "chat",
      start_time: 1_700_000_000_000 + index * 1000,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
      },
    });
  await writeFile(
    join(folder, "spans.jsonl"),
    Array.from({ length: 20 }, (_, index) => span(index)).join("\n"),
  );
  const ended = await run("check", "jitter", "--spans", "spans.jsonl", "--json", "-");
  assert.equal(ended.code, 3, ended.err);
  const report = JSON.parse(ended.out) as EvalReport;
  assert.equal(report.checks[0]?.check, "jitter");
});

test("a promptfoo configuration becomes a gate that runs", async () => {
  await writeFile(
    join(folder, "promptfooconfig.yaml"),
    [
      "prompts: ['Say word {{number}}']",
      "providers: [openai:gpt-4o]",
      "tests:",
      "  - vars: {number: 11}",
      "    assert: [{type: equals, value: word 11}, {type: javascript, value: 'true'}]",
      "  - vars: {number: 12}",
      "    assert: [{type: contains, value: '12'}]",
    ].join("\n"),
  );
  const imported = await run("import", "promptfooconfig.yaml", "--out", "imported");
  assert.equal(imported.code, 0, imported.err);
  assert.match(
    imported.out,
    /cases\.jsonl: 2 cases\n.*2 evaluators.*\nnot imported: tests\[0\]\.assert\[1\], javascript/,
  );
  const config = join(folder, "imported", "eval.yaml");
  const text = await readFile(config, "utf8");
  await writeFile(config, text.replace("http://127.0.0.1:8000/v1", scripted.url));
  const gate = await run("gate", "--config", config);
  assert.equal(gate.code, 0, gate.out + gate.err);
  const again = await run("import", "promptfooconfig.yaml", "--out", "imported");
  assert.deepEqual([again.code, /exists already/.test(again.err)], [4, true]);
});
