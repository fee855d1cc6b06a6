import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { EvalCase } from "@octavo/evals";
import { Random } from "@octavo/statistics";
import { applyCandidate, withText } from "./candidate.js";
import { TunedFiles } from "./files.js";
import { fileDiff } from "./line-diff.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-files-"));
});
after(() => rm(folder, { recursive: true }));

const parameters = {
  type: "object",
  properties: { "in/out": { type: "string", description: "where to" }, description: { type: "string" } },
};
const tools = [{ type: "function", function: { name: "move", description: "moves", parameters } }] as const;
const schema = { type: "object", properties: { total: { type: "number", description: "the sum" } } };
const paths = { prompt: "prompt.md", tools: "tools.json", schema: "schema.json", examples: "examples.jsonl" };

test("every description is a part, reaches the request, and comes back as a diff that git applies", async () => {
  await writeFile(join(folder, "prompt.md"), "One.\nTwo.\n");
  await writeFile(join(folder, "tools.json"), `${JSON.stringify(tools, undefined, 4)}\n`);
  await writeFile(join(folder, "schema.json"), JSON.stringify(schema));
  const files = await TunedFiles.read(paths, folder);
  const ids = ["prompt", "tool:move", "tool:move:/properties/in~1out", "schema:/properties/total"];
  assert.deepEqual(
    files.parts.map(({ id }) => id),
    ids,
  );
  let candidate = files.seed;
  for (const id of ids) candidate = withText(candidate, id, `new ${id}\nwith $& in it`);
  candidate = { ...candidate, shots: [{ caseId: "a", input: "in", output: "out", reasoning: "since" }] };
  const evalCase: EvalCase = {
    id: "1",
    messages: [
      { role: "system", content: "old" },
      { role: "user", content: "question" },
    ],
    tools,
    context: undefined,
    expected: {},
    parameters: { responseFormat: { type: "json_schema", json_schema: { name: "x", schema } } },
    tenant: undefined,
    cluster: undefined,
    tags: [],
    metadata: {},
  };
  const asked = applyCandidate(candidate, evalCase);
  assert.deepEqual(asked.messages, [
    { role: "system", content: "new prompt\nwith $& in it" },
    { role: "user", content: "in" },
    { role: "assistant", content: "since\nout" },
    { role: "user", content: "question" },
  ]);
  const sent = JSON.stringify([asked.tools, asked.parameters.responseFormat]);
  for (const id of ids.slice(1)) assert.ok(sent.includes(JSON.stringify(candidate.texts[id])), id);
  const template = withText(files.seed, "prompt", "Q: {{input}}");
  assert.deepEqual(applyCandidate(template, evalCase).messages[1], { role: "user", content: "Q: question" });

  execFileSync("git", ["init", "-q"], { cwd: folder });
  execFileSync("git", ["apply", "-"], { cwd: folder, input: files.diffOf(candidate) });
  const changed = await TunedFiles.read(paths, folder);
  assert.deepEqual(changed.seed, candidate);
  assert.equal(files.diffOf(files.seed), "");
  assert.match(await readFile(join(folder, "tools.json"), "utf8"), /^ {4}\{\n/m);
});

test("diffs of random edits apply", async () => {
  const random = new Random(5);
  for (let round = 0; round < 12; round += 1) {
    const line = (): string =>
      `${random.pick(["a", "b", "c", ""])}${random.uniform() < 0.97 ? "\n" : "\r\n"}`;
    const from = Array.from({ length: random.integer(0, 40) }, line);
    const edited = from.flatMap((one) =>
      random.uniform() < 0.15 ? random.pick([[], [line()], [one, line()]]) : [one],
    );
    const end = random.pick(["", "last"]);
    const [old, next] = [from.join(""), `${edited.join("")}${end}`];
    if (old === "") continue;
    await writeFile(join(folder, "text"), old);
    const diff = fileDiff("text", old, next);
    if (diff !== "") execFileSync("git", ["apply", "--whitespace=nowarn", "-"], { cwd: folder, input: diff });
    assert.equal(await readFile(join(folder, "text"), "utf8"), next);
  }
});

test("files that are missing or something else are named", async () => {
  await writeFile(join(folder, "bad.json"), "{");
  await assert.rejects(
    TunedFiles.read({ prompt: "none.md" }, folder),
    /files\.prompt: none\.md: cannot be read/,
  );
  await assert.rejects(
    TunedFiles.read({ tools: "bad.json" }, folder),
    /files\.tools: bad\.json: expected a JSON array/,
  );
  await assert.rejects(TunedFiles.read({ schema: "bad.json" }, folder), /files\.schema/);
  await writeFile(join(folder, "bad.jsonl"), '{"input": "x"}\n');
  await assert.rejects(TunedFiles.read({ examples: "bad.jsonl" }, folder), /bad\.jsonl: line 1/);
  await assert.rejects(TunedFiles.read({}, folder), /nothing to optimise/);
});
