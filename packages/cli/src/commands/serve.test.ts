import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import test, { after } from "node:test";
import { runOctavo, startOctavo } from "../testing/run-octavo.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-serve-"));
after(() => rmSync(folder, { recursive: true }));

/** What a server says on standard error until its banner ends. */
async function bannerOf(stream: Readable): Promise<string> {
  let said = "";
  for await (const text of stream.iterator({ destroyOnReturn: false })) {
    said += String(text);
    if (/curl .*\n[^]*-d '.*'\n/.test(said)) break;
  }
  return said;
}

/** The status of a GET over a Unix domain socket. */
function statusAt(socketPath: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const call = get({ socketPath, path }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode));
    });
    call.on("error", reject);
  });
}

test("settings come from a file and variables; standard output is JSON lines and nothing else", async () => {
  const file = join(folder, "serve.yaml");
  const uds = join(folder, "octavo.sock");
  writeFileSync(
    file,
    `served-model-name: [mine]\nthreads: 1\nenforce-eager: true\nuds: ${uds}\nmax_model_len: 512\n`,
  );
  const env = { OCTAVO_ROOT_PATH: "/llm", OCTAVO_MAX_NUM_SEQS: "4" };
  const { child, ended } = startOctavo(["serve", "--config", file, "--auto"], { env });
  const banner = await bannerOf(child.stderr);
  assert.match(banner, /serves mine at the socket .*octavo\.sock/);
  assert.match(banner, /context 512 tokens/);
  assert.match(banner, /--enforce-eager has no effect: there is no graph/);
  assert.match(banner, /--auto: --kv-cache-memory \S+ \(weights/);
  assert.equal(await statusAt(uds, "/llm/v1/models"), 200);
  assert.equal(await statusAt(uds, "/v1/nothing"), 404);
  const second = await runOctavo(["serve", "--uds", uds]);
  assert.match(second.err, /another server listens on .*\[invalid_option\]/);
  child.kill("SIGTERM");
  const { code, out } = await ended;
  assert.equal(code, 0);
  const lines = out.trimEnd().split("\n");
  const logged = lines.map((line) => JSON.parse(line) as { msg: string; path?: string });
  assert.deepEqual(
    logged.filter(({ msg }) => msg === "request").map(({ path }) => path),
    ["/llm/v1/models", "/v1/nothing"],
  );
});

test("what cannot be served is said before weights are loaded", async () => {
  const busy = createServer();
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
  const address = busy.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const other = join(folder, "file");
  writeFileSync(other, "");
  try {
    for (const [flags, message] of [
      [["--port", String(port)], /the port is in use/],
      [["--host", "203.0.113.7"], /cannot listen on 203\.0\.113\.7/],
      [["--uds", other], /is there and no socket/],
      [["--enable-lora", "--lora-modules", `a=${folder}`], /holds no adapter_config\.json/],
      [["--enable-lora", "--lora-modules", "a=/nowhere"], /\/nowhere is not there/],
      [["--tenants", "/nowhere.json"], /there is no such file/],
      [["--config", "/nowhere.yaml"], /cannot be read: there is no such file/],
    ] as const) {
      const { code, err } = await runOctavo(["serve", ...flags]);
      assert.equal(code, 1, flags.join(" "));
      assert.match(err, message);
      assert.match(err, /\[invalid_option\]\n$/);
      assert.doesNotMatch(err, /loading|\n\s+at /, flags.join(" "));
    }
  } finally {
    busy.close();
  }
});

test("several models in one process, from a file, of which one is in memory at a time", async () => {
  const file = join(folder, "models.yaml");
  writeFileSync(
    file,
    "models: [small=octavo-mini, big=octavo-mini]\nmax-loaded-models: 1\nport: 0\nthreads: 1\nmax-model-len: 512\n",
  );
  const { child, ended } = startOctavo(["serve", "--config", file]);
  const banner = await bannerOf(child.stderr);
  assert.match(banner, /Octavo serves small, big at/);
  const [url = ""] = /http:\/\/\S+(?=\/v1\n)/.exec(banner) ?? [];
  const states = async (): Promise<unknown> => {
    const { data } = (await (await fetch(`${url}/v1/models`)).json()) as {
      data: { id: string; state: string }[];
    };
    return data.map(({ id, state }) => `${id} ${state}`);
  };
  assert.deepEqual(await states(), ["small loaded", "big unloaded"]);
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "big", prompt: "Hello", max_tokens: 2 }),
  });
  assert.equal(((await answer.json()) as { model: string }).model, "big");
  assert.deepEqual(await states(), ["small unloaded", "big loaded"]);
  child.kill("SIGTERM");
  assert.equal((await ended).code, 0);
  const named = await runOctavo(["serve", "a=octavo-mini", "b=octavo-mini", "--served-model-name", "c"]);
  assert.match(named.err, /write several models as NAME=MODEL/);
});
