import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { runOctavo } from "../testing/run-octavo.js";
import { type ScriptedServer, startScriptedServer } from "../testing/scripted-server.js";

let folder = "";
let server: ScriptedServer;
let asked = 0;

/** Answers in capitals where its prompt says so, and as a teacher finds out that it should. */
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-optimize-"));
  server = await startScriptedServer((request, { model, messages }, response) => {
    response.setHeader("content-type", "application/json");
    if (request.method !== "POST") {
      response.end(JSON.stringify({ data: [{ id: "artifact" }] }));
      return;
    }
    asked += 1;
    const [system, user] = messages ?? [];
    const word = user?.content ?? "";
    const content =
      model === "teacher"
        ? "<text>Answer in capitals.</text>"
        : system?.content.includes("capitals") === true
          ? word.toUpperCase()
          : word;
    const message = { role: "assistant", content };
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
  });
  const cases = Array.from({ length: 60 }, (_, index) => {
    const word = `word ${String.fromCodePoint(97 + (index % 26))}${index}`;
    return `${JSON.stringify({ input: word, expected: word.toUpperCase() })}\n`;
  });
  await writeFile(join(folder, "cases.jsonl"), cases.join(""));
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

async function configured(name: string, more: string, calls = 200): Promise<string> {
  const path = join(folder, name);
  await writeFile(join(folder, "prompt.md"), "Be brief.\nRepeat the word.\n");
  const config = `version: 1
target: {base_url: "${server.url}", model: artifact}
teacher: {base_url: "${server.url}", model: teacher}
files: {prompt: prompt.md}
cases: {all: cases.jsonl}
evaluators: [{name: exact_match}]
budget: {calls: ${calls}}
${more}
`;
  await writeFile(path, config);
  return path;
}

test("a better prompt comes as a diff, is written when asked, and the finished search asks nothing again", async () => {
  const path = await configured("optimize.yaml", "optimizer: {name: gepa, options: {rounds: 6}}");
  const { code, out, err } = await runOctavo(["optimize", "--config", path]);
  assert.equal(code, 0, err);
  assert.match(
    out,
    /^--- a\/prompt\.md\n\+\+\+ b\/prompt\.md\n@@ -1,2 \+1,1 @@\n-Be brief\.\n-Repeat the word\.\n\+Answer in capitals\.\n$/,
  );
  assert.match(err, /Better: 0\.0 to 100\.0 points on \d+ held-out cases: \+100\.0 \(95 % interval/);
  const askedBefore = asked;
  const again = await runOctavo([
    "optimize",
    "--config",
    path,
    "--write",
    "--json",
    join(folder, "result.json"),
  ]);
  assert.equal(again.code, 0, again.err);
  assert.equal(asked, askedBefore);
  assert.equal(await readFile(join(folder, "prompt.md"), "utf8"), "Answer in capitals.\n");
  const { verdict, heldOut } = JSON.parse(await readFile(join(folder, "result.json"), "utf8")) as {
    verdict: string;
    heldOut: { interval: number[] };
  };
  assert.equal(verdict, "better");
  assert.ok((heldOut.interval[0] ?? 0) > 0);
});

test("no better ends with 2 and changes nothing", async () => {
  const path = await configured("seed.yaml", "optimizer: random_search\nseed: 3", 16);
  const { code, out, err } = await runOctavo(["optimize", "--config", path, "--write"]);
  assert.equal(code, 2, err);
  assert.equal(out, "");
  assert.match(err, /ended because the budget of 16 calls/);
  assert.equal(await readFile(join(folder, "prompt.md"), "utf8"), "Be brief.\nRepeat the word.\n");
});

test("what is wrong in the file is said with its line", async () => {
  const bad: readonly (readonly [string, RegExp])[] = [
    ["optimizer: dspy", /bad\.yaml:8:1[12]: optimizer: there is no optimizer "dspy"/],
    ["optimizer: {name: gepa, options: {minibach: 2}}", /minibach/],
    ["optimizer: bayesian", /files: bayesian finds examples: name the file/],
    ["optimizer: gepa\ntemprature: 1", /temprature/],
  ];
  for (const [more, expected] of bad) {
    const { code, err } = await runOctavo([
      "optimize",
      "--config",
      await configured("bad.yaml", more),
      "--validate",
    ]);
    assert.equal(code, 1, more);
    assert.match(err, expected);
  }
});
