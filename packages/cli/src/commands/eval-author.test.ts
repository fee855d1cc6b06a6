import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { runOctavo, serveOctavo } from "../testing/run-octavo.js";
import { type ScriptedServer, startScriptedServer } from "../testing/scripted-server.js";

let folder = "";
let cases = "";
let server: ScriptedServer;
let isLenient = false;

/** Writes criteria when asked to, and as a judge misses "money back" until its criteria mention it. */
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-author-"));
  server = await startScriptedServer((request, { messages = [] }, response) => {
    response.setHeader("content-type", "application/json");
    if (request.method !== "POST") {
      response.end(JSON.stringify({ data: [{ id: "small" }] }));
      return;
    }
    const [system, user] = messages.map(({ content }) => content);
    const judges = system?.includes("To score") === true;
    const isBad =
      user?.includes("refund") === true ||
      (system?.includes("0.0 for money back") === true && user?.includes("money back") === true);
    const verdict = isBad && !isLenient ? "0.1" : "0.9";
    const written =
      user?.includes("got these answers wrong") === true
        ? "0.0 for money back or a refund."
        : "0.0 for a refund.";
    const content = judges ? JSON.stringify({ reason: "so", verdict }) : `<criteria>${written}</criteria>`;
    response.end(
      JSON.stringify({
        choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      }),
    );
  });
  cases = join(folder, "cases.jsonl");
  const answers = ["You get a refund", "Your money back", "We look into it", "Please call", "No"];
  const rows = Array.from({ length: 150 }, (_, index) => ({
    id: `case-${index}`,
    input: "Where is my money?",
    output: `${answers[index % 5]}, ticket ${index}`,
  }));
  await writeFile(cases, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

test("a sentence becomes a file, labels improve it, and drift of the judge is seen", async () => {
  const out = join(folder, "no-refunds.yaml");
  const flags = ["--cases", cases, "--judge", server.url, "--judge-model", "small"];
  const author = ["eval", "author", "answers must never promise refunds", "--out", out, ...flags];
  const first = await runOctavo([...author, "--ask", "6"], { input: "p\nwhat\nf\ns\np\nq\n" });
  assert.equal(first.code, 0, first.err);
  assert.match(first.err, /\[1 of 6\] answers must never promise refunds/);
  assert.match(first.out, /labels to tune by; at least 10 are needed|labels to judge by; at least 10/);
  const written = await readFile(out, "utf8");
  assert.match(first.out, /next +octavo eval improve \S+no-refunds\.yaml asks for more labels/);
  assert.match(written, /as: answers_must_never_promise_refunds/);
  assert.match(written, /grading_criteria: 0\.0 for a refund\./);
  const given = (await readFile(`${out}.labels.jsonl`, "utf8")).trim().split("\n");
  assert.equal(given.length, 3);
  assert.equal((await runOctavo(author)).code, 4, "what is there is not written over");

  const labels = Array.from({ length: 150 }, (_, index) => ({
    id: `case-${index}`,
    label: index % 5 < 2 ? "fail" : "pass",
  }));
  await writeFile(`${out}.labels.jsonl`, labels.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const improved = await runOctavo(["eval", "improve", out, ...flags]);
  assert.equal(improved.code, 0, improved.err);
  assert.match(improved.out, /^Better: on \d+ held-out labels/);
  assert.match(improved.out, /kappa +1\.000 of \d+ random labels/);
  assert.match(improved.out, /next +use it with --evaluator \S+no-refunds\.yaml/);
  const second = await readFile(out, "utf8");
  assert.match(second, /version: 2/);
  assert.match(second, /0\.0 for money back or a refund/);
  const again = await runOctavo(["eval", "improve", out, ...flags]);
  assert.match(again.out, /^Nothing that was tried agreed with more of the labels/);
  assert.match(await readFile(out, "utf8"), /version: 2/);

  const run = await runOctavo([
    "eval",
    "calibrate",
    cases,
    "--judge",
    server.url,
    "--judge-model",
    "small",
    "--evaluator",
    out,
  ]);
  assert.match(run.out, /answers_must_never_promise_refunds, judged by small/, "the file is an evaluator");
  const steady = await runOctavo(["eval", "improve", out, ...flags, "--drift"]);
  assert.equal(steady.code, 0, steady.out);
  isLenient = true;
  const drifted = await runOctavo(["eval", "improve", out, ...flags, "--drift"]);
  isLenient = false;
  assert.equal(drifted.code, 2);
  assert.match(drifted.out, /The judge has drifted: 60 of 150 verdicts/);
});

test("an edited file that is no evaluator is refused with its line", async () => {
  const path = join(folder, "bad.yaml");
  await writeFile(path, "format: octavo.evaluator/1\nstatement: x\nversion: one\n");
  const { code, err } = await runOctavo([
    "eval",
    "improve",
    path,
    "--cases",
    cases,
    "--judge",
    server.url,
    "--judge-model",
    "small",
  ]);
  assert.equal(code, 4);
  assert.match(err, /bad\.yaml:3:\d+: version/);
});

test("labels that do not belong to the answers are told before a model is asked", async () => {
  const out = join(folder, "never.yaml");
  const labels = join(folder, "labels.jsonl");
  // nothing listens there
  const judge = ["--judge", "http://127.0.0.1:9", "--judge-model", "none"];
  const author = ["eval", "author", "be kind", "--out", out, "--cases", cases, "--labels", labels, ...judge];
  const line = (id: string, label: string) => `${JSON.stringify({ id, label })}\n`;
  for (const [text, says] of [
    [line("case-1", "good"), /labels\.jsonl, line 1: expected \{"id"/],
    [line("q1", "pass") + line("q2", "fail"), /2 of 2 labels in .* are of no case in .*, "q1" first/],
  ] as const) {
    await writeFile(labels, text);
    const { code, err } = await runOctavo(author);
    assert.equal(code, 5, err);
    assert.match(err, says);
  }
  await writeFile(labels, line("case-1", "pass") + line("q2", "fail"));
  const { code, err } = await runOctavo(author);
  assert.match(err, /1 of 2 labels in .* are of no case/);
  assert.match(err, /the writer gave no answer \(connection\)/);
  assert.equal(code, 6);
  assert.equal(existsSync(out), false);
});

test("a model too small to judge or to write is found out by labels", async () => {
  const out = join(folder, "small.yaml");
  const few = join(folder, "few.jsonl");
  const rows = (await readFile(cases, "utf8")).trimEnd().split("\n").slice(0, 60);
  await writeFile(few, rows.map((row) => `${row}\n`).join(""));
  const labels = rows.map((_, index) => ({ id: `case-${index}`, label: index % 5 < 2 ? "fail" : "pass" }));
  await writeFile(`${out}.labels.jsonl`, labels.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const mini = await serveOctavo("--served-model-name", "mini");
  try {
    const flags = ["--cases", few, "--judge", mini.url, "--judge-model", "mini", "--ask", "0"];
    const authored = await runOctavo(["eval", "author", "never promise refunds", "--out", out, ...flags]);
    assert.equal(authored.code, 0, authored.err);
    assert.match(authored.err, /no criteria were written: the statement itself is what the judge gets/);
    assert.match(authored.out, /next +.*take another judge model/);
    const improved = await runOctavo(["eval", "improve", out, ...flags]);
    assert.equal(improved.code, 0, improved.err);
    assert.doesNotMatch(improved.out, /^Better/);
    assert.match(improved.out, /next +.*take another judge model/);
    assert.match(await readFile(out, "utf8"), /version: 1/);
  } finally {
    await mini.stop();
  }
});
