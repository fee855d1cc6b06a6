import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { collect, createFakeEngine, generationRequest } from "../testing/fakes/engine-fixture.js";
import { CrashJournal } from "./crash-journal.js";
import { currentMark, type ProcessMark } from "./process-end.js";
import { contentDigest } from "./quarantined-content.js";

const program = fileURLToPath(new URL("../testing/fakes/crash-process.js", import.meta.url));
const deadly = [1, 42, 3];

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "octavo-crash-journal-"));
  path = join(folder, "state", "journal");
});
afterEach(() => rmSync(folder, { recursive: true }));

interface Life {
  readonly signal: NodeJS.Signals | null;
  /** By index of the prompt; undefined for what did not end. */
  readonly codes: readonly (string | null | undefined)[];
}

/** Starts a process that computes prompts, and waits for its end or its death. */
function live(...prompts: readonly (readonly number[])[]): Life {
  return endBy("SIGSEGV", ...prompts);
}

/** As `live`, with another end by the deadly prompt than a fault of native code. */
function endBy(end: NodeJS.Signals | "uncaught", ...prompts: readonly (readonly number[])[]): Life {
  const { signal, stdout, stderr, status } = spawnSync(
    process.execPath,
    [program, path, JSON.stringify(prompts), end],
    { encoding: "utf8" },
  );
  assert.ok(signal === end || (end === "uncaught" && status !== 0) || status === 0, stderr);
  const codes: (string | null | undefined)[] = prompts.map(() => undefined);
  for (const line of stdout.split("\n").filter((text) => text !== "")) {
    const { index, code } = JSON.parse(line) as { index: number; code: string | null };
    codes[index] = code;
  }
  return { signal, codes };
}

function journal(): CrashJournal {
  return new CrashJournal(path, (problem) => assert.fail(problem));
}

const request = (...tokens: number[]) => ({ promptTokens: Int32Array.from(tokens) });

describe("a request that kills its process", () => {
  test("is rejected after the second crash, and no other request in flight is", () => {
    const innocent = [7, 8, 9];
    assert.equal(live(innocent, deadly).signal, "SIGSEGV");
    assert.deepEqual(live(innocent), { signal: null, codes: [null] }, "the first death proves nothing");
    assert.equal(live(innocent, [2, 2], deadly).signal, "SIGSEGV");
    assert.deepEqual(live(deadly, innocent), { signal: null, codes: ["request_quarantined", null] });
    assert.deepEqual(live(deadly).codes, ["request_quarantined"], "and from then on");
    assert.deepEqual(live([1, 41, 3]).codes, [null], "another prompt is another request");
  });

  test("takes no suspect with it: they are tried one at a time", () => {
    const innocent = [7, 8, 9];
    assert.equal(live(deadly, innocent).signal, "SIGSEGV");
    const second = live(innocent, deadly);
    assert.deepEqual(second.codes, [null, "queue_full"], "the other one is told to come again");
    assert.equal(live(deadly, innocent).signal, "SIGSEGV");
    assert.deepEqual(live(innocent, deadly).codes, [null, "request_quarantined"]);
  });

  test("stays suspect when its client leaves before its end, and is cleared by its end alone", async () => {
    assert.equal(live(deadly).signal, "SIGSEGV");
    const leave = async (maxTokens: number, abortAfter: number): Promise<void> => {
      const { engine } = createFakeEngine({ crashJournal: path, backend: { script: () => 5 } });
      const controller = new AbortController();
      let steps = 0;
      using _ = engine.observe({
        onStep: () => {
          steps += 1;
          if (steps === abortAfter) controller.abort();
        },
      });
      await collect(engine.generate(generationRequest(deadly, { maxTokens }), controller.signal));
      await engine[Symbol.asyncDispose]();
    };
    await leave(100, 2);
    {
      using left = journal();
      assert.ok(!left.isClear, "it was not computed to its end");
    }
    assert.equal(live(deadly).signal, "SIGSEGV", "it may be tried again");
    assert.deepEqual(live(deadly).codes, ["request_quarantined"]);
    rmSync(path);
    assert.equal(live(deadly).signal, "SIGSEGV");
    await leave(4, Number.POSITIVE_INFINITY);
    using after = journal();
    assert.ok(after.isClear, "who came to its end is cleared");
  });

  test("is not what was only queued", () => {
    const first = journal();
    first.queued(request(1));
    first.write();
    first[Symbol.dispose]();
    appendFileSync(path, "fault SIGSEGV\n");
    using second = journal();
    assert.ok(second.isClear);
  });

  test("is found by any sign of a fault, and an end without one proves nothing", () => {
    for (const end of ["SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "uncaught"] as const) {
      rmSync(path, { force: true });
      endBy(end, deadly);
      endBy(end, deadly);
      assert.deepEqual(live(deadly).codes, ["request_quarantined"], end);
    }
    for (const end of ["SIGKILL", "SIGTERM", "SIGHUP"] as const) {
      rmSync(path, { force: true });
      for (let times = 0; times < 3; times += 1) assert.equal(endBy(end, deadly).signal, end);
      using left = journal();
      assert.ok(left.isClear, end);
    }
  });

  test("may have used up memory, if the kernel killed a process for that in the same run of the machine", () => {
    const now = currentMark();
    if (now.bootId === null || now.memoryKills === null) return;
    const began = `began ${contentDigest(request(1))}\n`;
    const isClearAfter = (mark: ProcessMark, ending = ""): boolean => {
      rmSync(path, { force: true });
      journal()[Symbol.dispose]();
      writeFileSync(path, `octavo crash journal 1\nprocess ${JSON.stringify(mark)}\n${began}${ending}`);
      using left = journal();
      return left.isClear;
    };
    const before = { ...now, memoryKills: now.memoryKills - 1 };
    assert.equal(isClearAfter(before), false);
    assert.equal(isClearAfter(now), true, "no process was killed for memory");
    assert.equal(isClearAfter({ ...before, bootId: "another run" }), true, "the machine was restarted");
    assert.equal(isClearAfter({ ...now, bootId: "another run" }, "fault SIGSEGV\n"), false);
    assert.equal(isClearAfter(now, "fault SIGSEGV\nsurvived SIGSEGV\n"), true, "a handler took care of it");
  });
});

describe("the crash journal", () => {
  test("is clear after whatever ended in order", async () => {
    const { engine } = createFakeEngine({ crashJournal: path });
    const controller = new AbortController();
    const left = collect(engine.generate(generationRequest([3], { maxTokens: 100 }), controller.signal));
    await collect(engine.generate(generationRequest([1, 2], { maxTokens: 3 })));
    controller.abort();
    await left;
    await engine[Symbol.asyncDispose]();
    assert.match(readFileSync(path, "utf8"), /began/);
    using again = journal();
    assert.ok(again.isClear);
  });

  test("remembers what failed twice within a process", async () => {
    const explode = (): never => {
      throw new RangeError("the kernel gave up");
    };
    const backend = {
      beforeStep: (plan: { tokenIds: Int32Array; numTokens: number }) =>
        plan.tokenIds.subarray(0, plan.numTokens).includes(42) ? explode() : undefined,
    };
    const { engine } = createFakeEngine({ crashJournal: path, backend });
    await assert.rejects(collect(engine.generate(generationRequest(deadly))), {
      code: "request_quarantined",
    });
    await engine[Symbol.asyncDispose]();
    assert.deepEqual(live(deadly).codes, ["request_quarantined"]);
  });

  test("survives half a line, and holds only what counts when it has grown", () => {
    const digest = contentDigest(request(1));
    journal()[Symbol.dispose]();
    writeFileSync(
      path,
      `octavo crash journal 1\nbegan ${digest}\nfault SIGSEGV\nbegan ${digest.slice(0, 20)}`,
    );
    using second = journal();
    assert.ok(!second.isClear);
    second.check(digest);
    second.queued(request(1));
    assert.throws(() => second.check(digest), { code: "queue_full" });
    second.began(request(1));
    for (let index = 0; index < 12_000; index += 1) {
      const one = request(2, index);
      second.began(one);
      second.ended(one, true);
      if (index % 100 === 0) second.write();
    }
    second.write();
    assert.ok(statSync(path).size < 1024 ** 2);
    second[Symbol.dispose]();
    appendFileSync(path, "fault SIGSEGV\n");
    using third = journal();
    assert.throws(() => third.check(digest), { code: "request_quarantined", message: /crashed twice/ });
  });

  test("forgets after a week, and keeps a bounded number", () => {
    const day = 86_400_000;
    const lines = ["octavo crash journal 1"];
    const old = contentDigest(request(1));
    for (let index = 0; index < 2000; index += 1)
      lines.push(`refused ${contentDigest(request(3, index))} ${Date.now()}`);
    lines.push(`refused ${old} ${Date.now() - 8 * day}`, `suspect ${contentDigest(request(2))} never`);
    journal()[Symbol.dispose]();
    writeFileSync(path, `${lines.join("\n")}\n`);
    using again = journal();
    again.check(old);
    again.check(contentDigest(request(3, 0)));
    assert.throws(() => again.check(contentDigest(request(3, 1999))), { code: "request_quarantined" });
    assert.equal(readFileSync(path, "utf8").split("\n").length, 2 + 1023 + 1);
  });

  test("keeps another server off, until it ends however it ends", () => {
    const first = journal();
    assert.throws(journal, { code: "invalid_option", message: /another server/ });
    assert.throws(() => live([1]), /another server/);
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    endBy("SIGKILL", deadly);
    journal()[Symbol.dispose]();
  });

  test("refuses other files, and paths that cannot be written", () => {
    const other = join(folder, "notes.txt");
    writeFileSync(other, "my notes");
    for (const wrong of [other, folder, join(other, "journal")]) {
      assert.throws(
        () => new CrashJournal(wrong, () => {}),
        { code: "invalid_option", message: /crash_journal/ },
        wrong,
      );
    }
    assert.equal(readFileSync(other, "utf8"), "my notes");
  });
});
