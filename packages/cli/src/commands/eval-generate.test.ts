import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { startScriptedServer } from "../testing/scripted-server.js";
import { type EndedOctavo, runOctavo } from "../testing/run-octavo.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-data-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const octavo = (...args: readonly string[]): Promise<EndedOctavo> =>
  runOctavo(["eval", ...args], { cwd: folder });

const countWords = (text: string): number => text.split(/\s+/).length;

test("RULER's cases fill the lengths that the server counts", async () => {
  const server = await startScriptedServer((request, { model, prompt = "" }, response) => {
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
  const uncounted = await octavo("generate", "ruler", ...flags, "--model", "other");
  assert.match(uncounted.err, /does not count tokens \(POST \/tokenize/);
  server.close();
  const needy = await octavo("generate", "ruler", "--target", url, "--model", "words", "--tasks", "qa_1");
  assert.match(needy.err, /qa_1 asks questions over documents/);
});
