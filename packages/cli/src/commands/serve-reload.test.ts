import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { startOctavo } from "../testing/run-octavo.js";

test("SIGHUP takes new keys, and drops no stream", { skip: process.platform === "win32" }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "octavo-reload-"));
  const tenants = join(folder, "tenants.json");
  const write = (key: string): void =>
    writeFileSync(tenants, JSON.stringify({ keys: [{ key, tenant: "acme" }] }));
  write("old");
  const { child, ended } = startOctavo(["serve", "--port", "0", "--threads", "1", "--tenants", tenants]);
  try {
    const [, url = ""] = await lineOf(child.stderr, /at (http:\S+)\/v1/);
    const ask = (key: string, stream: boolean): Promise<Response> =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({
          messages: [{ role: "user", content: "Hello!" }],
          max_tokens: stream ? 200 : 2,
          ignore_eos: true,
          stream,
        }),
      });
    const streaming = await ask("old", true);
    assert.equal(streaming.status, 200);
    write("new");
    const told = lineOf(child.stderr, /SIGHUP: keys, tenants and certificates/);
    child.kill("SIGHUP");
    await told;
    assert.equal((await ask("old", false)).status, 401);
    assert.equal((await ask("new", false)).status, 200);
    assert.match(await streaming.text(), /"finish_reason":"length"[\s\S]*data: \[DONE\]/);
    writeFileSync(tenants, "{");
    const refused = lineOf(child.stderr, /SIGHUP: nothing was changed: .*\[invalid_option\]/);
    child.kill("SIGHUP");
    await refused;
    assert.equal((await ask("new", false)).status, 200);
  } finally {
    child.kill("SIGTERM");
    assert.equal((await ended).code, 0);
    rmSync(folder, { recursive: true });
  }
});

/** The first match in what a stream says from now on. */
async function lineOf(stream: NodeJS.ReadableStream, pattern: RegExp): Promise<RegExpExecArray> {
  let said = "";
  for (;;) {
    const [text] = (await once(stream, "data")) as [string];
    said += text;
    const found = pattern.exec(said);
    if (found !== null) return found;
  }
}
