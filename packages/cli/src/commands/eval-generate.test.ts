import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { sendModels, startScriptedServer } from "../testing/scripted-server.js";
import { type EndedOctavo, runOctavo } from "../testing/run-octavo.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-data-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const octavo = (...args: readonly string[]): Promise<EndedOctavo> =>
  runOctavo(["eval", ...args], { cwd: folder });

const countWords = (text: string): number => text.split(/\s+/).length;

test("a generation that fails on its way leaves neither half a file nor the earlier one changed", async () => {
  let counted = 0;
  const server = await startScriptedServer((_, { prompt = "" }, response) => {
    counted += 1;
    if (counted > 40) response.statusCode = 501;
    response.end(JSON.stringify(counted > 40 ? { error: "broken" } : { count: countWords(prompt) }));
  });
  await writeFile(join(folder, "old.jsonl"), "old");
  const flags = ["--target", server.url, "--model", "words", "--lengths", "1k", "--tasks", "vt"];
  const ended = await octavo("generate", "ruler", ...flags, "--count", "50", "--out", "old.jsonl");
  server.close();
  assert.notEqual(ended.code, 0);
  assert.match(ended.err, /does not count tokens \(POST \/tokenize: broken/);
  assert.equal(await readFile(join(folder, "old.jsonl"), "utf8"), "old");
  assert.deepEqual(await readdir(folder), ["old.jsonl"]);
  await rm(join(folder, "old.jsonl"));
});

test("RULER's cases fill the lengths that the server counts", async () => {
  const server = await startScriptedServer((request, { model, prompt = "" }, response) => {
    if (request.url === "/v1/models") return sendModels(response, "words");
    response.statusCode = request.url === "/tokenize" && model === "words" ? 200 : 404;
    response.end(JSON.stringify({ count: countWords(prompt) }));
  });
  const { url } = server;
  const flags = ["--target", url, "--lengths", "1k", "2k", "--count", "3", "--tasks", "vt", "niah_single_1"];
  const ended = await octavo("generate", "ruler", ...flags, "--model", "words", "--out", "ruler.jsonl");
  assert.equal(ended.code, 0, ended.err);
  const cases = (await readFile(join(folder, "ruler.jsonl"), "utf8"))
    .trimEnd()
    .split("\n")
    .map(
      (line) =>
        JSON.parse(line) as {
          tags: string[];
          messages: { content: string }[];
          parameters: { maxTokens: number };
        },
    );
  assert.equal(cases.length, 12);
  for (const { tags, messages, parameters } of cases) {
    const room = Number(tags[2]?.slice("length:".length)) - parameters.maxTokens - 32;
    const used = countWords(messages[0]?.content ?? "");
    assert.ok(used <= room && used > room - 30, `${used} of ${room}`);
  }
  const unserved = await octavo("generate", "ruler", ...flags, "--model", "other", "--out", "none.jsonl");
  assert.match(unserved.err, /does not serve "other"; it serves words/);
  assert.deepEqual(await readdir(folder), ["ruler.jsonl"], "what failed leaves no file");
  server.close();
  const needy = await octavo("generate", "ruler", "--target", url, "--model", "words", "--tasks", "qa_1");
  assert.match(needy.err, /qa_1 asks questions over documents/);
});
