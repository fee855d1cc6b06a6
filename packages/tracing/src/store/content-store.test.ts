import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { bareSpan, fullSpan } from "../testing/example-spans.js";
import { contentFolder, ContentStore } from "./content-store.js";

async function textIn(folder: string): Promise<string> {
  const names = await readdir(folder);
  const files = names.filter((name) => /\.(?:jsonl|parquet)$/.test(name));
  return (
    await Promise.all(files.map((name) => readFile(join(folder, name), "latin1").catch(() => "")))
  ).join("");
}

test("content is kept apart from the spans, for this user alone, and goes first", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-content-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  const store = await ContentStore.open({ folder, contentMaxAgeMs: 1600 });
  const own = join(folder, contentFolder);
  const secret = { role: "user", parts: [{ type: "text" as const, content: "the secret words" }] };
  store.add({ ...fullSpan, content: { ...fullSpan.content!, inputMessages: [secret] } });
  store.add(bareSpan);
  await store.flush(30_000);
  assert.doesNotMatch(await textIn(folder), /the secret words/);
  assert.match(await textIn(folder), new RegExp(fullSpan.identity.spanId));
  assert.equal((await stat(own)).mode & 0o777, 0o700);
  // nothing is added: the store ends and removes what is old by itself
  const deadline = Date.now() + 60_000;
  while ((await readdir(own)).length > 0 && Date.now() < deadline) await sleep(50);
  assert.deepEqual(await readdir(own), []);
  assert.match(await textIn(folder), new RegExp(fullSpan.identity.spanId), "the span stays");
  await store.close(30_000);
  assert.equal(store.counts.delivered, 2);
});
