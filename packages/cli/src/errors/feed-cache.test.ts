import assert from "node:assert/strict";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { clusterFindings, type FindingCluster } from "@octavo/optimize";
import { Random } from "@octavo/statistics";
import { runOctavo } from "../testing/run-octavo.js";
import { FeedCache } from "./feed-cache.js";
import { readFindings } from "./read-findings.js";

const limits = { gatewayLog: undefined, alerts: undefined, firstTokenMs: 1000, gapMs: 500, score: 0.5 };

/** A call of one of a few causes; those that failed are worded in many ways. */
function spanLine(random: Random, id: number): string {
  const failed = random.uniform() < 0.6;
  const word = () => random.pick("paper leaf sheet quire margin letter".split(" "));
  return `${JSON.stringify({
    traceId: String(id).padStart(32, "0"),
    spanId: String(id).padStart(16, "0"),
    startTimeUnixNano: `${1_760_000_000_000 + random.integer(0, 50)}000000`,
    endTimeUnixNano: "1760000000900000000",
    ...(failed && { status: { code: 2 } }),
    attributes: {
      "gen_ai.operation.name": "chat",
      ...(failed
        ? {
            "error.type": random.pick(["target_failed", "queue_full"]),
            "error.message": `${word()} ${word()} ${word()} refused ${id}`,
          }
        : { "octavo.slowest_gap.cause": "queue", "octavo.slowest_gap.duration": 0.9 }),
    },
  })}\n`;
}

async function clustersOf(spans: string, cache: string): Promise<readonly FindingCluster[]> {
  const own = new FeedCache(cache);
  const { findings } = await readFindings({ ...limits, spans: [spans] }, own);
  const clusters = await clusterFindings(findings, {
    recall: (content, make) => own.recall(content, make),
  });
  await own.prune();
  assert.equal(own.numBroken, 0);
  // what is not there and what is undefined are the same
  return JSON.parse(JSON.stringify(clusters)) as FindingCluster[];
}

test("a feed that grew by any steps, in any order, is the feed made at once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-feed-cache-"));
  try {
    for (let seed = 0; seed < 6; seed++) {
      const random = new Random(seed);
      const home = join(folder, String(seed));
      const [grown, once] = [join(home, "grown"), join(home, "once")];
      for (const path of [grown, once]) await mkdir(path, { recursive: true });
      const lines = Array.from({ length: 60 }, (_, id) => spanLine(random, id));
      const waiting = lines
        .map((line) => ({ line, key: random.uniform() }))
        .toSorted((a, b) => a.key - b.key)
        .map(({ line }) => line);
      while (waiting.length > 0) {
        const file = join(grown, `${random.integer(0, 3)}.jsonl`);
        await appendFile(file, waiting.splice(0, random.integer(1, 25)).join(""));
        // long enough for its state to be kept
        if (random.uniform() < 0.7) await sleep(70);
        const cached = await clustersOf(grown, join(home, "cache"));
        assert.deepEqual(cached, await clustersOf(grown, join(home, "other", String(waiting.length))));
      }
      await writeFile(join(once, "all.jsonl"), lines.join(""));
      const atOnce = await clustersOf(once, join(home, "new"));
      assert.deepEqual(await clustersOf(grown, join(home, "cache")), atOnce);
      assert.equal(
        atOnce.reduce((sum, { findings }) => sum + findings.length, 0),
        lines.length,
      );
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("files that did not change are not read again, those that did are, and other limits are other findings", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-feed-cache-"));
  try {
    const file = join(folder, "spans.jsonl");
    await writeFile(file, "first");
    const at = new Date(1_700_000_000_000);
    await utimes(file, at, at);
    await sleep(70);
    let made = 0;
    const recall = async (reading = "a"): Promise<number> => {
      const cache = new FeedCache(join(folder, "cache"));
      return cache.recallOfFiles({ files: [file], reading }, async () => ++made);
    };
    assert.deepEqual([await recall(), await recall()], [1, 1]);
    // of the same length, with its time set back
    await writeFile(file, "other");
    await utimes(file, at, at);
    assert.equal(await recall(), 2);
    await sleep(70);
    assert.deepEqual([await recall(), await recall(), await recall("b"), await recall()], [3, 3, 4, 3]);

    const changing = new FeedCache(join(folder, "cache"));
    await appendFile(file, "more");
    await sleep(70);
    const make = async (): Promise<string> => {
      await appendFile(file, "while it is read");
      return "half";
    };
    assert.equal(await changing.recallOfFiles({ files: [file], reading: "a" }, make), "half");
    await sleep(70);
    assert.equal(await recall(), 5);

    // what nobody asked for goes, and nothing that is somebody else's
    await writeFile(join(folder, "cache", "notes.json"), "mine");
    await new FeedCache(join(folder, "cache")).prune();
    assert.deepEqual(await readdir(join(folder, "cache")), ["notes.json"]);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a cache that was damaged or is of another version is made again, and errors list says so", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-feed-cache-"));
  try {
    const spans = join(folder, "spans.jsonl");
    const state = join(folder, "feed.json");
    const cache = `${state}.cache`;
    const random = new Random(1);
    await writeFile(spans, Array.from({ length: 20 }, (_, id) => spanLine(random, id)).join(""));
    await sleep(70);
    const list = async (): Promise<{ readonly err: string; readonly seen: unknown }> => {
      await rm(state, { force: true });
      const { code, out, err } = await runOctavo([
        "errors",
        "list",
        "--spans",
        spans,
        "--state",
        state,
        "--json",
      ]);
      assert.equal(code, 0, err);
      return { err, seen: out.replaceAll(/"since": \d+/g, "") };
    };
    const { seen, err } = await list();
    assert.equal(err, "");
    const names = await readdir(cache);
    assert.ok(names.length >= 2);
    const damages: readonly ((text: string) => string)[] = [
      () => "",
      (text) => text.slice(0, -5),
      (text) => text.replace(/queue/, "other"),
      () => '{"version":1}\n{}',
    ];
    for (const damage of damages) {
      const whole = await Promise.all(names.map(async (name) => readFile(join(cache, name), "utf8")));
      const broken = whole.map(damage);
      for (const [index, name] of names.entries()) await writeFile(join(cache, name), broken[index]!);
      const again = await list();
      assert.deepEqual(again.seen, seen);
      if (broken.every((text, index) => text !== whole[index]))
        assert.match(
          again.err,
          /files in .*feed\.json\.cache could not be used; what they held was made again/,
        );
      // made again: the next list has nothing to say
      assert.deepEqual(await list(), { err: "", seen });
    }
    for (const name of names) {
      const text = await readFile(join(cache, name), "utf8");
      await writeFile(
        join(cache, name),
        text.replace('"version":1', '"version":0').replace("queue", "other"),
      );
    }
    assert.deepEqual(await list(), { err: "", seen });

    // a folder that cannot be written is no reason to fail
    await rm(cache, { recursive: true });
    await writeFile(cache, "");
    assert.deepEqual((await list()).seen, seen);
  } finally {
    await rm(folder, { recursive: true });
  }
});
