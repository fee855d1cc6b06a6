import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { runOctavo, serveOctavo, startOctavo } from "../testing/run-octavo.js";

it("octavo stage computes the first layers of octavo serve's model; without a key's file neither starts", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-stage-"));
  const keyFile = join(folder, "key");
  const missing = await runOctavo(["stage", "--port", "0", "--pipeline-key-file", keyFile]);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /pipeline_key_file .*key: .*no such file/);
  await writeFile(keyFile, "a secret of the two of us\n");
  const stage = startOctavo(["stage", "--port", "0", "--pipeline-key-file", keyFile]);
  let said = "";
  await new Promise<void>((resolve) => {
    stage.child.stdout.on("data", (text: string) => {
      said += text;
      if (said.includes("\n")) resolve();
    });
  });
  const [, address = ""] = /^octavo stage: (127\.0\.0\.1:\d+)$/m.exec(said) ?? [];
  const answerOf = async (...flags: readonly string[]): Promise<unknown> => {
    const server = await serveOctavo("--max-model-len", "128", ...flags);
    const answer = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: "The sea is", temperature: 0, max_tokens: 8 }),
    });
    const { choices } = (await answer.json()) as { readonly choices: unknown };
    await server.stop();
    return choices;
  };
  const alone = await answerOf();
  assert.ok(alone);
  const stages = ["--pipeline-parallel-size", "2", "--pipeline-stage-addresses", address];
  assert.deepEqual(await answerOf(...stages, "--pipeline-key-file", keyFile), alone);
  stage.child.kill("SIGTERM");
  assert.equal((await stage.ended).code, 0);
  await rm(folder, { recursive: true });
});
