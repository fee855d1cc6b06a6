import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { EvalCase } from "../cases/eval-case.js";
import { sampleOf } from "../evaluators/testing/sample.js";
import { type FunctionAnswer, functionTarget } from "../targets/function-target.js";
import type { Target } from "../targets/target.js";
import { certify } from "./certify.js";

const caseOf = (id: string): EvalCase =>
  sampleOf({ case: { id, messages: [{ role: "user", content: id }] } }).case;

type Body = Readonly<Record<string, unknown>> & {
  readonly cache_salt?: string;
  readonly octavo?: {
    readonly faults?: Readonly<Record<string, unknown>>;
  };
};

const cases = Array.from({ length: 5 }, (_, index) => caseOf(`case-${index}`));
const settings = { seed: 3, batchSize: 2, rounds: 2, signal: new AbortController().signal };
const refused = {
  code: "unsupported_parameter",
  httpStatus: 400,
  message: "octavo.faults: this server takes no faults",
};

/** A server that gives six digests, which `change` may change, and the bodies that it was sent. */
function server(change: (body: Body, digests: string[], run: number) => FunctionAnswer | undefined): {
  readonly target: Target;
  readonly bodies: Body[];
} {
  const bodies: Body[] = [];
  const runs = new Map<string, number>();
  const target = functionTarget("octavo", (evalCase, { extraBody = {}, wantsDigests }) => {
    assert.equal(wantsDigests, true);
    const body = extraBody as Body;
    bodies.push(body);
    const run = runs.get(evalCase.id) ?? 0;
    runs.set(evalCase.id, run + 1);
    const digests = Array.from({ length: 6 }, (_, token) => `${evalCase.id}:${token}`);
    return change(body, digests, run) ?? { text: "hello", model: "mini", logitsDigests: digests };
  });
  return { target, bodies };
}

describe("a certificate", () => {
  it("passes a server that computes the same bits in every condition", async () => {
    const { target, bodies } = server(() => undefined);
    const progress: number[] = [];
    const certificate = await certify(target, cases, {
      ...settings,
      onProgress: ({ done, total }) => progress.push(done / total),
    });
    assert.equal(certificate.verdict, "pass");
    assert.deepEqual([certificate.model, certificate.numCases, certificate.notes], ["mini", 5, []]);
    assert.deepEqual(
      certificate.conditions.map(({ name, runs, tokens }) => [name, runs, tokens]),
      [
        ["cached", 5, 30],
        ["whole", 5, 30],
        ["batch", 10, 60],
        ["preempted", 5, 30],
        ["evicted", 5, 30],
      ],
    );
    assert.equal(progress.at(-1), 1);
    const salts = bodies.map(({ cache_salt: salt }) => salt).filter((salt) => salt !== undefined);
    assert.equal(new Set(salts).size, 5 + 2, "each case alone, and each round");
    const evicted = bodies.flatMap(({ octavo }) => octavo?.faults?.["evict_at_token"] ?? []);
    assert(evicted.every((at) => Number(at) >= 0 && Number(at) < 6));
  });

  it("fails one that does not, and names the first token that differs", async () => {
    const { target } = server(({ octavo }, digests) => {
      if (octavo?.faults?.["preempt_at_token"] === undefined) return undefined;
      digests[4] = "other";
      digests[5] = "other";
      return { text: "hallo", logitsDigests: digests };
    });
    const certificate = await certify(target, cases, settings);
    assert.equal(certificate.verdict, "fail");
    assert.deepEqual(certificate.divergences[0], {
      caseId: "case-0",
      condition: "preempted",
      token: 4,
      expected: "case-0:4",
      got: "other",
      isVisible: true,
    });
    assert.equal(certificate.divergences.length, 5);
    assert.equal(certificate.conditions.find(({ name }) => name === "preempted")?.divergedRuns, 5);
    const shorter = server(({ cache_salt: salt }, digests) => {
      if (salt?.includes("-batch-") === true) digests.pop();
      return undefined;
    });
    const cut = await certify(shorter.target, cases, settings);
    assert.equal(cut.verdict, "fail");
    assert.deepEqual([cut.divergences[0]?.token, cut.divergences[0]?.got], [5, undefined]);
    assert.equal(cut.divergences[0]?.isVisible, false);
  });

  it("fails one whose whole answers are read differently from its streams", async () => {
    const target = functionTarget("octavo", (_, { stream }) => ({
      text: stream === false ? "helo" : "hello",
      logitsDigests: ["a", "b"],
    }));
    const certificate = await certify(target, cases, settings);
    assert.equal(certificate.verdict, "fail");
    assert.deepEqual(
      [...new Set(certificate.divergences.map(({ condition, token }) => [condition, token].join()))],
      ["whole,2"],
    );
  });

  it("does without faults where the server takes none, and says so", async () => {
    const { target } = server(({ octavo }) =>
      octavo?.faults === undefined ? undefined : { failure: refused },
    );
    const certificate = await certify(target, cases, settings);
    assert.equal(certificate.verdict, "pass");
    assert.deepEqual(
      certificate.conditions.map(({ name }) => name),
      ["cached", "whole", "batch"],
    );
    assert.match(certificate.notes.join(" "), /takes no faults/);
  });

  it("is inconclusive about what could not be compared", async () => {
    const nothing = await certify(
      functionTarget("other", () => "hello"),
      cases,
      settings,
    );
    assert.equal(nothing.verdict, "inconclusive");
    assert.match(nothing.notes.join(" "), /no digests/);
    const failure = { code: "overloaded", httpStatus: 503, message: "busy" };
    const once = server((_, __, run) => (run === 4 ? { failure } : undefined));
    const partial = await certify(once.target, cases, settings);
    assert.equal(partial.verdict, "inconclusive");
    assert.match(partial.notes.join(" "), /case-\d, batch: busy/);
    const down = await certify(
      functionTarget("down", () => ({ failure })),
      cases,
      settings,
    );
    assert.equal(down.verdict, "inconclusive");
    assert.match(down.notes.join(" "), /case-0: busy/);
    await assert.rejects(certify(once.target, [], settings), { code: "invalid_option", param: "dataset" });
  });
});
