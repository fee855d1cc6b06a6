import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { rolloutSchema } from "@octavo/gateway";
import { runOctavo, serveOctavo } from "../testing/run-octavo.js";

const ask = (url: string, words: number, at: number): Promise<number> =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      messages: [{ role: "user", content: `${at} ${"paper ".repeat(words)}` }],
      max_tokens: 4,
    }),
  }).then(async (response) => {
    await response.text();
    return response.status;
  });

test("a patch of a server whose context is too short is proven on the requests that it refused", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-prove-"));
  try {
    const config = join(folder, "serve.yaml");
    const store = join(folder, "store");
    const state = join(folder, "feed.json");
    await writeFile(config, `max-model-len: 100\nkv-cache-memory: 8MiB\nthreads: 1\ntrace-store: ${store}\n`);
    const server = await serveOctavo("--config", config);
    const statuses: number[] = [];
    for (let at = 0; at < 12; at++) statuses.push(await ask(server.url, at % 2 === 0 ? 5 : 120, at));
    assert.deepEqual(statuses.slice(0, 2), [200, 400]);
    await server.stop();
    const recorded = await readdir(store);
    const given = ["--spans", store, "--state", state, "--config", config, "--json"];
    const listed = await runOctavo(["errors", "list", ...given]);
    const { entries } = JSON.parse(listed.out) as {
      entries: { id: string; cause: string; fix: { set: object } }[];
    };
    const entry = entries.find(({ cause }) => cause === "context_length_exceeded")!;
    assert.deepEqual(entry.fix.set, { "max-model-len": 400 });

    for (const [patch, says] of [
      ["max-model-length=400", /the patch sets max-model-length, which octavo serve does not have/],
      ["max-model-len=many", /max-model-len/],
      ["port=80", /the patch sets port, which a replay cannot show/],
    ] as const) {
      const refused = await runOctavo(["errors", "prove", entry.id, ...given, "--set", patch]);
      assert.notEqual(refused.code, 0);
      assert.match(refused.err, says);
      assert.doesNotMatch(refused.err, /pair 1/, "nothing has run");
    }
    const before = JSON.parse(await readFile(state, "utf8")) as { entries: { proof?: object }[] };
    assert.ok(before.entries.every(({ proof }) => proof === undefined));

    const rollout = join(folder, "rollout.yaml");
    const proving = ["errors", "prove", entry.id, ...given, "--pairs", "3", "--speedup", "4"];
    const names = ["--rollout", rollout, "--model", "support", "--primary", "short", "--canary", "long"];
    const proven = await runOctavo([...proving, ...names]);
    assert.equal(proven.code, 0, proven.err);
    const proof = JSON.parse(proven.out) as { verdict: string; requests: number; target: object };
    assert.equal(proof.verdict, "accepted", proven.out);
    assert.equal(proof.requests, 12);
    assert.deepEqual(await readdir(store), recorded, "the replay leaves no spans among production's");

    const text = await readFile(rollout, "utf8");
    assert.match(text, /^# long is short served with max-model-len: 400$/m);
    const { rollouts } = JSON.parse(text.slice(text.indexOf("{"))) as { rollouts: readonly unknown[] };
    assert.equal(rolloutSchema.parse(rollouts[0]).canary.target, "long");

    const after = JSON.parse(await readFile(state, "utf8")) as { entries: { id: string; status: string }[] };
    assert.equal(after.entries.find(({ id }) => id === entry.id)?.status, "fixed");
    const issue = await runOctavo(["errors", "issue", entry.id, "--state", state]);
    assert.match(issue.out, /## Replay\n\naccepted: failed falls/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
