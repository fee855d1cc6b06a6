import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { EvalReport } from "@octavo/evals";
import { type ScriptedServer, startScriptedServer } from "../testing/scripted-server.js";
import { type EndedOctavo, runOctavo } from "../testing/run-octavo.js";

let folder = "";
let server: ScriptedServer;
let url = "";

/** A model that is always polite, and a judge that takes an answer with "please" for a polite one. */
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-calibrate-"));
  server = await startScriptedServer((request, { messages }, response) => {
    if (request.method !== "POST") {
      response.writeHead(404).end();
      return;
    }
    const shown = messages?.[1]?.content;
    const verdict = shown?.includes("please") === true ? "pass" : "fail";
    const content = shown === undefined ? "Yes please" : JSON.stringify({ reason: "so it is", verdict });
    const message = { role: "assistant", content };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
  });
  ({ url } = server);
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

async function write(name: string, cases: readonly object[]): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, cases.map((one) => `${JSON.stringify(one)}\n`).join(""));
  return file;
}

async function calibrate(
  name: string,
  cases: readonly object[],
  ...more: readonly string[]
): Promise<EndedOctavo> {
  const file = await write(name, cases);
  const judge = ["--judge", url, "--judge-model", "small", "--evaluator", "is_polite"];
  return runOctavo(["eval", "calibrate", file, ...judge, ...more]);
}

/** Every fifth polite answer says it in words that the judge does not know. */
const labelled = Array.from({ length: 60 }, (_, index) => {
  const isPolite = index % 2 === 0;
  const output = `${isPolite && index % 10 !== 0 ? "Yes please" : "No"} ${index}`;
  return {
    id: `case-${index}`,
    input: "May I?",
    output,
    ...(index < 40 ? { label: isPolite ? "pass" : "fail" } : {}),
  };
});

test("a calibration says how far the judge can be believed", async () => {
  const { code, out, err } = await calibrate("labelled.jsonl", labelled);
  assert.equal(code, 0, err);
  assert.match(out, /is_polite, judged by small/);
  assert.match(out, /40, 20 of them pass; the judge gave no verdict on 0/);
  assert.match(out, /kappa\s+0\.800 \[/);
  assert.match(out, /passes 16 of 20 that pass, fails 20 of 20 that fail/);
  assert.match(out, /0\.400 of 20 unlabelled, as judged\n\s+corrected\s+0\.500 \[/);
  const { out: json } = await calibrate("labelled.jsonl", labelled, "--json");
  const [row] = JSON.parse(json) as readonly [{ readonly kappa: { readonly estimate: number } }];
  assert.ok(Math.abs(row.kappa.estimate - 0.8) < 1e-9);
});

test("labels that do not decide, or are none, and a judge that is down have exit codes of their own", async () => {
  const few = await calibrate("few.jsonl", labelled.slice(0, 8));
  assert.equal(few.code, 3);
  assert.match(few.out, /refused: 4 of 8 labels say \w+; at least 10 of each are needed/);
  const wrong = await calibrate("wrong.jsonl", [{ ...labelled[0], label: "perhaps" }]);
  assert.equal(wrong.code, 5);
  assert.match(wrong.err, /case "case-0": label: expected pass or fail/);
  const down = await calibrate("down.jsonl", labelled.slice(0, 4), "--judge", "http://127.0.0.1:1");
  assert.equal(down.code, 8);
  const missing = await calibrate("labelled.jsonl", labelled, "--evaluator", "is_polit");
  assert.equal(missing.code, 4);
});

test("a run with labels reports how far its judge can be believed", async () => {
  await write("labels.jsonl", labelled);
  await write(
    "asked.jsonl",
    Array.from({ length: 20 }, (_, index) => ({ id: `asked-${index}`, input: "May I?" })),
  );
  const config = {
    version: 1,
    targets: { candidate: { base_url: url, model: "large" } },
    datasets: { asked: { path: "asked.jsonl" } },
    judge: { base_url: url, model: "small", labels: { path: "labels.jsonl" } },
    evaluators: ["is_polite", { name: "is_polite", as: "by_another", options: { model: "other" } }],
    health: { quality: ["pass_rate(is_polite) >= 0.5"] },
  };
  const file = join(folder, "eval.yaml");
  await writeFile(file, JSON.stringify(config));
  const { out, err } = await runOctavo(["eval", "gate", "--config", file, "--json", "-"]);
  const { calibrations } = JSON.parse(out) as Pick<EvalReport, "calibrations">;
  assert.deepEqual(
    calibrations.map(({ evaluator, judge, numLabels }) => [evaluator, judge, numLabels]),
    [
      ["is_polite", "small", 40],
      ["by_another", "other", 40],
    ],
    err,
  );
  assert.equal(calibrations[0]?.correctedPassRate?.estimate, 1, "all of the candidate's answers pass");
});
