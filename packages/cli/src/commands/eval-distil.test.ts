import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { runOctavo } from "../testing/run-octavo.js";
import { type ScriptedServer, startScriptedServer } from "../testing/scripted-server.js";

let folder = "";
let server: ScriptedServer;
let verdicts = 0;
let dimensions = 8;

/** A judge that takes "please" for polite, and embeddings that count words. */
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-distil-"));
  server = await startScriptedServer((request, asked, response) => {
    response.setHeader("content-type", "application/json");
    if (request.url?.endsWith("/embeddings") === true) {
      const { input } = asked as { readonly input?: readonly string[] };
      const data = (input ?? []).map((text, index) => ({ index, embedding: embeddingOf(text) }));
      response.end(JSON.stringify({ data }));
      return;
    }
    if (request.method !== "POST") {
      response.writeHead(404).end();
      return;
    }
    verdicts += 1;
    const verdict = asked.messages?.[1]?.content.includes("please") === true ? "pass" : "fail";
    const message = { role: "assistant", content: JSON.stringify({ reason: "so it is", verdict }) };
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
  });
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

function embeddingOf(text: string): readonly number[] {
  const words = ["please", "no", "yes", "thanks", "go", "now", "word", "other"];
  return words.slice(0, dimensions).map((word) => text.split(" ").filter((one) => one === word).length);
}

const openings = ["yes please", "no", "no thanks", "please go now", "go", "yes thanks please", "now"];

async function cases(
  name: string,
  count: number,
  keep: (output: string) => boolean = () => true,
): Promise<string> {
  const path = join(folder, name);
  const rows = Array.from({ length: count }, (_, index) => ({
    id: `case-${index}`,
    input: "May I?",
    output: `${openings[index % openings.length]} number ${index}`,
  }));
  await writeFile(
    path,
    rows
      .filter(({ output }) => keep(output))
      .map((row) => `${JSON.stringify(row)}\n`)
      .join(""),
  );
  return path;
}

test("a judge is distilled into a file, which then saves its calls and says when the embeddings changed", async () => {
  const out = join(folder, "polite.json");
  const judge = ["--judge", server.url, "--judge-model", "small"];
  const made = await runOctavo([
    "eval",
    "distil",
    await cases("train.jsonl", 700),
    ...judge,
    "--evaluator",
    "is_polite",
    "--out",
    out,
  ]);
  assert.equal(made.code, 0, made.err);
  assert.match(made.out, /judge calls saved {2}100\.0 %/);
  assert.match(made.out, /agreement +280 of 280 decisions, at least 98\.9 % with 95\.0 % confidence/);
  const { about, as } = JSON.parse(await readFile(out, "utf8")) as { about: string; as: string };
  assert.equal(as, "is_polite");
  assert.match(about, /at least 98\.\d+ % agreement/);

  verdicts = 0;
  const labelled = await cases("new.jsonl", 100);
  const calibrate = ["eval", "calibrate", labelled, ...judge, "--evaluator", out];
  const run = await runOctavo(calibrate);
  assert.match(run.out, /decided by +1:distilled_judge 100/, run.err);
  assert.ok(verdicts < 20, `${verdicts} verdicts, for the audited alone`);

  dimensions = 5;
  const changed = await runOctavo(calibrate);
  dimensions = 8;
  assert.match(changed.out, /decided by .*2:is_polite 100/);
  assert.match(changed.out, /a stage failed: .*embeddings of 5 dimensions.*the model has changed/);
});

test("verdicts of one label are refused, and too few cases are not certified", async () => {
  const judge = [
    "--judge",
    server.url,
    "--judge-model",
    "small",
    "--evaluator",
    "is_polite",
    "--out",
    join(folder, "x.json"),
  ];
  const polite = await cases("polite.jsonl", 300, (output) => output.includes("please"));
  const oneSided = await runOctavo(["eval", "distil", polite, ...judge]);
  assert.equal(oneSided.code, 5);
  assert.match(
    oneSided.err,
    /the judge passed all \d+ cases: there is nothing to learn; add cases that fail/,
  );
  const few = await runOctavo(["eval", "distil", await cases("few.jsonl", 100), ...judge]);
  assert.equal(few.code, 3);
  assert.match(few.out, /not certified: .*judge about \d+ cases/);
});
