import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { runOctavo } from "../testing/run-octavo.js";

const call = (id: number, attributes: Readonly<Record<string, unknown>>, isError = false) =>
  JSON.stringify({
    traceId: String(id).padStart(32, "0"),
    spanId: String(id).padStart(16, "0"),
    startTimeUnixNano: `${1_760_000_000_000 + id * 1000}000000`,
    endTimeUnixNano: `${1_760_000_000_900 + id * 1000}000000`,
    ...(isError && { status: { code: 2 } }),
    attributes: { "gen_ai.operation.name": "chat", ...attributes },
  });

const slow = (id: number, cause: string) =>
  call(id, {
    "octavo.slowest_gap.cause": cause,
    "octavo.slowest_gap.duration": 0.8,
    "octavo.tenant.id": "acme",
  });
const refused = (id: number) =>
  call(id, { "error.type": "queue_full", "error.message": `${id} requests wait already` }, true);

test("findings become clusters with a fix, keep their status, and come back as regressed", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-errors-"));
  try {
    const spans = join(folder, "spans.jsonl");
    const state = join(folder, "feed.json");
    const config = join(folder, "serve.yaml");
    await writeFile(config, "max_num_batched_tokens: 4096\n");
    const list = async (lines: readonly string[]) => {
      await writeFile(spans, `${lines.join("\n")}\n`);
      return runOctavo(["errors", "list", "--spans", spans, "--state", state, "--config", config, "--json"]);
    };
    const first = await list([
      slow(1, "prefill_burst"),
      slow(2, "prefill_burst"),
      refused(3),
      refused(4),
      call(5, {}),
    ]);
    assert.equal(first.code, 0, first.err);
    const { calls, findings, unverified, entries } = JSON.parse(first.out) as {
      calls: number;
      findings: number;
      unverified: number;
      entries: readonly {
        id: string;
        cause: string;
        status: string;
        count: number;
        fix: { set: object } | null;
      }[];
    };
    assert.deepEqual([calls, findings, unverified], [5, 4, 0]);
    assert.deepEqual(
      entries
        .toSorted((a, b) => a.cause.localeCompare(b.cause))
        .map(({ cause, status, count, fix }) => [cause, status, count, fix?.set]),
      [
        ["prefill_burst", "new", 2, { "max-prefill-step-ms": 50 }],
        ["queue_full", "new", 2, { "max-queued-requests": 4096 }],
      ],
    );

    const id = entries.find(({ cause }) => cause === "queue_full")!.id;
    const marked = await runOctavo(["errors", "mark", id.slice(0, 6), "fixed", "--state", state]);
    assert.equal(marked.code, 0, marked.err);
    // the marks of a file edited by hand count: the fix came before what follows
    const edited = (await readFile(state, "utf8")).replace(/"since": \d+/g, '"since": 1760000000000');
    await writeFile(state, edited);
    const again = await list([slow(1, "prefill_burst"), refused(3), refused(9)]);
    assert.match(again.out, /"cause": "queue_full",[^}]*"status": "regressed"/);

    const issue = await runOctavo(["errors", "issue", id.slice(0, 6), "--state", state]);
    assert.match(issue.out, /^# request: queue_full \(2 findings\)/);
    assert.match(issue.out, /`error\.message`:\n\n```\n3 requests wait already\n```/);
    assert.match(issue.out, /```yaml\nmax-queued-requests: 4096\n```/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a fix starts from sizes as octavo serve reads them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-errors-"));
  try {
    const config = join(folder, "serve.yaml");
    await writeFile(config, "kv-cache-memory: 16GiB\n");
    const spans = join(folder, "spans.jsonl");
    await writeFile(spans, `${slow(1, "preemption")}\n`);
    const state = join(folder, "feed.json");
    const { out, err } = await runOctavo([
      "errors",
      "list",
      "--spans",
      spans,
      "--state",
      state,
      "--config",
      config,
    ]);
    assert.match(out, new RegExp(`kv-cache-memory: ${64 * 2 ** 30}`), err);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("what the feed cannot use is refused by name", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-errors-"));
  try {
    const broken = join(folder, "feed.json");
    await writeFile(broken, '{"version": 2}');
    const typo = join(folder, "serve.yaml");
    await writeFile(typo, "max_num_seq: 4\n");
    const spans = join(folder, "spans.jsonl");
    await writeFile(spans, `${refused(1)}\n`);
    const state = join(folder, "new.json");
    for (const [args, says] of [
      [["list", "--spans", spans, "--state", broken], /no state of the error feed/],
      [["list", "--spans", spans, "--state", state, "--config", typo], /max-num-seqs/],
      [
        ["list", "--state", state],
        /no calls are recorded in .*: octavo serve --trace-store auto records them/,
      ],
      [["list", "--spans", join(folder, "none"), "--state", state], /the spans in .*none cannot be read/],
      [["mark", "abc", "fixed", "--state", state], /no cluster of the feed is abc: octavo errors list shows/],
      [["mark", "abc", "done", "--state", state], /status is one of/],
    ] as const) {
      const { code, err } = await runOctavo(["errors", ...args], { env: { XDG_DATA_HOME: folder } });
      assert.notEqual(code, 0);
      assert.match(err, says);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("changes of statuses are posted, signed, a bounded number of times, and to the given address alone", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-errors-"));
  const posts: { path: string; body: string; timestamp: string; signature: string }[] = [];
  const answers = [503, 302, 200];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString("utf8")));
    request.on("end", () => {
      const { "x-octavo-timestamp": timestamp, "x-octavo-signature": signature } = request.headers;
      posts.push({
        path: request.url ?? "",
        body,
        timestamp: String(timestamp),
        signature: String(signature),
      });
      response.writeHead(answers.shift() ?? 500, { location: "/elsewhere" }).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const spans = join(folder, "spans.jsonl");
    await writeFile(spans, `${refused(1)}\n`);
    const list = () =>
      runOctavo(
        [
          "errors",
          "list",
          "--spans",
          spans,
          "--state",
          join(folder, "feed.json"),
          "--webhook",
          `http://127.0.0.1:${port}/hook`,
          "--webhook-secret-env",
          "FEED_SECRET",
        ],
        { env: { FEED_SECRET: "secret" } },
      );
    const told = await list();
    // the first try met 503, the second a redirect, which is not followed and not tried again
    assert.notEqual(told.code, 0);
    assert.match(told.err, /was not told: it answered 302/);
    assert.deepEqual(
      posts.map(({ path }) => path),
      ["/hook", "/hook"],
    );
    const [{ body, timestamp, signature }] = posts as [(typeof posts)[0]];
    assert.equal(
      signature,
      `sha256=${createHmac("sha256", "secret").update(`${timestamp}.${body}`).digest("hex")}`,
    );
    const { changes } = JSON.parse(body) as { changes: readonly Record<string, unknown>[] };
    assert.deepEqual(
      changes.map(({ cause, from, to }) => [cause, from, to]),
      [["queue_full", null, "new"]],
    );
    // nothing changed since: nothing is posted
    assert.equal((await list()).code, 0);
    assert.equal(posts.length, 2);
  } finally {
    server.close();
    await rm(folder, { recursive: true });
  }
});
