import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { describe } from "node:test";
import { OctavoError, type ServingRecordInfo } from "@octavo/protocol";
import type { Answer } from "../../answers/answer.js";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Evaluator } from "../../evaluators/evaluator.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { type FunctionAnswer, functionTarget } from "../../targets/function-target.js";
import { openAiTarget } from "../../targets/openai-target.js";
import { completion, sendJson, startFakeServer } from "../../testing/fake-openai-server.js";
import type { AnswerOptions, Target } from "../../targets/target.js";
import type { TestBed } from "../check-run.js";
import { checkNamed } from "../table.js";
import { agreementWith } from "./agreement.js";
import { readUsage } from "./cache-usage.js";
import { fillerCase } from "./filler.js";
import { ObservationJournal } from "./observation-journal.js";
import { splitAnswer, tokenOffsets } from "./split-answer.js";

type Body = Readonly<Record<string, unknown>>;

const exact: Evaluator = {
  name: "exact",
  description: "Equal to the reference.",
  inputs: ["output", "expectedOutput"],
  output: "pass_fail",
  needsJudge: false,
  evaluate: ({ case: { expected }, answer: { text } }) => {
    const isRight = expected.outputs?.includes(text) ?? false;
    return { status: "scored", value: Number(isRight), passed: isRight };
  },
};

function casesOf(count: number): readonly EvalCase[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `case-${index}`;
    return { ...sampleOf({ case: { id } }).case, expected: { outputs: [`right ${index}`] } };
  });
}

function bedOf(candidate: Target, parts: Partial<TestBed> = {}): TestBed {
  return {
    candidate,
    baseline: undefined,
    replicas: [],
    startReplica: undefined,
    cases: casesOf(6),
    evaluators: [exact],
    seed: 7,
    signal: new AbortController().signal,
    ...parts,
  };
}

const rightFor = ({ id }: EvalCase): string => id.replace("case-", "right ");

/** Octavo's record with what these checks read. */
function record(fields: Partial<ServingRecordInfo>): ServingRecordInfo {
  const spread = { min: 1, mean: 1, max: 1 };
  return {
    request_id: "r",
    tenant: "default",
    is_over: true,
    queue_ms: 0,
    queue_depth_at_arrival: 0,
    prefill_ms: 1,
    decode_ms: 1,
    e2e_ms: 2,
    kernel_ms: 1,
    reader_lag_ms: 0,
    gaps: { count: 0, mean_ms: 0, p50_ms: 0, p99_ms: 0, max_ms: 0 },
    num_steps: 1,
    batch_size: spread,
    shared_prefill_tokens: spread,
    cached_tokens: 0,
    cache_hit_ratio: 0,
    evicted_prefix_tokens: 0,
    blocks_hit: 0,
    blocks_allocated: 1,
    blocks_evicted: 0,
    preemptions: 0,
    recomputed_tokens: 0,
    draft_tokens: 0,
    accepted_draft_tokens: 0,
    slow_gaps: [],
    ...fields,
  };
}

interface Sent {
  readonly id: string;
  readonly target: string;
  readonly body: Body;
}

function watched(
  name: string,
  sent: Sent[],
  answer: (evalCase: EvalCase, body: Body) => FunctionAnswer,
): Target {
  return functionTarget(name, (evalCase: EvalCase, { extraBody = {} }: AnswerOptions) => {
    sent.push({ id: evalCase.id, target: name, body: extraBody });
    return answer(evalCase, extraBody);
  });
}

describe("collecting for quantization", () => {
  test("both variants answer every case, greedily, in alternating order", async () => {
    const sent: Sent[] = [];
    const bed = bedOf(
      watched("candidate", sent, (one) => (one.id === "case-3" ? "wrong" : rightFor(one))),
      { baseline: watched("baseline", sent, rightFor) },
    );
    const { observations, result } = await checkNamed("quantization").run(bed, { concurrency: 1 });
    assert.deepEqual(
      sent.slice(0, 4).map(({ id, target }) => `${id} ${target}`),
      ["case-0 baseline", "case-0 candidate", "case-1 candidate", "case-1 baseline"],
    );
    assert(sent.every(({ body }) => body["temperature"] === 0));
    assert.equal(observations.length, 12);
    assert.deepEqual(
      result.movedCases.map(({ caseId, before, after }) => [caseId, before, after]),
      [["case-3", "right 3", "wrong"]],
    );
  });

  test("a failed answer has no scores and is tried again from the journal, the others are not", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
    try {
      const path = join(folder, "run.jsonl");
      let isDown = true;
      const sent: Sent[] = [];
      const candidate = watched("candidate", sent, (one) => {
        const failure = { code: "timeout", httpStatus: undefined, message: "late" };
        return one.id === "case-2" && isDown ? { failure } : rightFor(one);
      });
      const parts = { baseline: functionTarget("baseline", rightFor) };
      const runWith = async () => {
        await using journal = await ObservationJournal.open(path);
        return await checkNamed("quantization").run(bedOf(candidate, { ...parts, journal }), {});
      };
      const first = await runWith();
      assert.equal(first.observations.filter(({ failureCode }) => failureCode === "timeout").length, 1);
      assert.equal(sent.length, 6);
      // a line torn by a crash is not there
      await writeFile(path, `${await readFile(path, "utf8")}{"key":"0123`);
      isDown = false;
      const second = await runWith();
      assert.deepEqual(
        sent.slice(6).map(({ id }) => id),
        ["case-2"],
      );
      assert.equal(second.result.hypotheses[0]?.estimate, 0);
      assert.equal(second.result.sampleSize.have, 6);
      // another question is another plan
      await using journal = await ObservationJournal.open(path);
      await checkNamed("quantization").run(bedOf(candidate, { ...parts, journal, seed: 8 }), {});
      assert.equal(sent.length, 13);
      // and another server is another context
      await using elsewhere = await ObservationJournal.open(path, ["http://elsewhere/v1"]);
      await checkNamed("quantization").run(bedOf(candidate, { ...parts, journal: elsewhere }), {});
      assert.equal(sent.length, 19);
      await writeFile(path, "something else\n");
      await assert.rejects(ObservationJournal.open(path), { code: "invalid_option" });
      await assert.rejects(ObservationJournal.open(folder), { code: "invalid_option" });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("a score that failed is asked for again, and an evaluator that throws does not end the check", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
    try {
      let isDown = true;
      const moody: Evaluator = {
        ...exact,
        evaluate: (sample) => {
          if (isDown && sample.case.id === "case-2")
            throw new OctavoError("judge_failed", "the judge is down");
          return exact.evaluate(sample, { signal: new AbortController().signal });
        },
      };
      const sent: Sent[] = [];
      const baseline = functionTarget("baseline", rightFor);
      const runWith = async () => {
        await using journal = await ObservationJournal.open(join(folder, "run.jsonl"));
        const bed = bedOf(watched("candidate", sent, rightFor), { baseline, journal, evaluators: [moody] });
        return await checkNamed("quantization").run(bed, {});
      };
      const first = await runWith();
      assert.deepEqual(
        first.observations.filter(({ caseId }) => caseId === "case-2").map((one) => one.failedScores),
        [["exact"], ["exact"]],
      );
      assert.equal(first.result.brokenEvaluators?.length, 2);
      isDown = false;
      const second = await runWith();
      assert.deepEqual(
        sent.slice(6).map(({ id }) => id),
        ["case-2"],
      );
      assert.equal(second.result.brokenEvaluators, undefined);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("a reference that no server can score token by token is left out", async () => {
    await using server = await startFakeServer({
      "/v1/chat/completions": (_, response) => sendJson(response, 200, completion("right 0")),
    });
    const candidate = openAiTarget({ name: "candidate", baseUrl: server.baseUrl, model: "fake" });
    const bed = bedOf(candidate, { baseline: functionTarget("b", rightFor), cases: casesOf(1) });
    const { observations } = await checkNamed("quantization").run(bed, { forced: true });
    assert(server.requests.length > 1);
    assert(observations.every(({ forced, scores }) => forced === undefined && scores["exact"] === 1));
  });

  test("a bed without a baseline is refused, an abort ends the run", async () => {
    const row = checkNamed("quantization");
    await assert.rejects(row.run(bedOf(functionTarget("c", rightFor)), {}), { code: "invalid_option" });
    const control = new AbortController();
    const candidate = functionTarget("c", (one) => {
      control.abort(new Error("enough"));
      return rightFor(one);
    });
    const bed = bedOf(candidate, { baseline: functionTarget("b", rightFor), signal: control.signal });
    await assert.rejects(row.run(bed, {}), /enough/);
  });
});

function faultsOf(body: Body): Body | undefined {
  return (body["octavo"] as { readonly faults?: Body } | undefined)?.faults;
}

function saltOf(body: Body): string {
  const salt = body["cache_salt"];
  return typeof salt === "string" ? salt : "";
}

/** A server like Octavo; with `isBroken` an evicted answer is another one. */
function evicting(
  sent: Sent[],
  options: { readonly takesFaults: boolean; readonly isBroken?: boolean },
): Target {
  return watched("candidate", sent, (one, body) => {
    const faults = faultsOf(body);
    if (faults !== undefined && !options.takesFaults) {
      const failure = { code: "unsupported_parameter", httpStatus: 400, message: "takes no faults" };
      return { failure };
    }
    const text = faults !== undefined && options.isBroken === true ? "broken" : rightFor(one);
    const isSalted = /-\d+-\d+$/.test(saltOf(body));
    return {
      text,
      logitsDigests: Array.from(text, (letter) => letter.codePointAt(0)!.toString(16)),
      usage: { promptTokens: 40, completionTokens: 10, cachedTokens: 32 },
      serving: record({
        cache_hit_ratio: isSalted ? 0 : 0.8,
        preemptions: faults === undefined ? 0 : 1,
        recomputed_tokens: faults === undefined ? 0 : 45,
      }),
    } satisfies Partial<Answer>;
  });
}

describe("collecting for eviction", () => {
  test("a server that takes faults loses blocks within the answer, and one that breaks is caught", async () => {
    const sent: Sent[] = [];
    const cases = casesOf(90);
    const { result } = await checkNamed("eviction").run(
      bedOf(evicting(sent, { takesFaults: true }), { cases }),
      {},
    );
    assert.equal(result.verdict, "pass", result.summary);
    const faults = sent.slice(1).flatMap(({ body }): readonly Body[] => {
      const own = faultsOf(body);
      return own === undefined ? [] : [own];
    });
    assert.equal(faults.length, 90);
    const tokens = faults.map((fault) => Number(fault["evict_at_token"] ?? fault["preempt_at_token"]));
    assert(tokens.every((token) => token >= 1 && token <= 9));
    assert(new Set(tokens).size > 5);
    assert.equal(faults.filter((fault) => "preempt_at_token" in fault).length, 45);
    const broken = await checkNamed("eviction").run(
      bedOf(evicting([], { takesFaults: true, isBroken: true })),
      {},
    );
    assert.equal(broken.result.verdict, "fail");
    assert.match(broken.result.summary, /6 of 6 answers differ/);
  });

  test("a server that takes none is asked with the prompt cached and under a salt nobody used", async () => {
    const sent: Sent[] = [];
    const cases = casesOf(90);
    const { result, observations } = await checkNamed("eviction").run(
      bedOf(evicting(sent, { takesFaults: false }), { cases }),
      { concurrency: 1 },
    );
    assert.equal(result.verdict, "pass", result.summary);
    assert.equal(observations.length, 270);
    const salts = sent.slice(1).map(({ body }) => saltOf(body));
    assert.equal(new Set(salts).size, 91);
    assert.equal(salts[0], salts[1], "the cache is warm before the first answer counts");
  });
});

describe("collecting for a burst", () => {
  test("cases run quietly, again, and while fillers are under way; memory is laid over them", async () => {
    const sent: Sent[] = [];
    const plain = watched("candidate", sent, rightFor);
    let usage = 0.2;
    const candidate: Target = {
      name: "candidate",
      answer: async (evalCase, options) => {
        if (evalCase.id.startsWith("filler")) {
          usage = 0.95;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        return plain.answer(evalCase, options);
      },
      metrics: () => Promise.resolve(`# TYPE x gauge\nvllm:kv_cache_usage_perc{engine="0"} ${usage}\n`),
    };
    const { observations } = await checkNamed("eviction-burst").run(bedOf(candidate), {
      burst_in_flight: 3,
      burst_prompt_tokens: 50,
      burst_lead_ms: 30,
      metrics_interval_ms: 10,
    });
    const counts = new Map<string, number>();
    for (const { condition } of observations) counts.set(condition, (counts.get(condition) ?? 0) + 1);
    assert.deepEqual([counts.get("quiet"), counts.get("quiet-again"), counts.get("burst")], [6, 6, 6]);
    assert(counts.get("filler")! >= 3);
    assert.equal(observations.find(({ condition }) => condition === "filler")?.kvCacheUsage, 0.95);
  });

  test("fillers share no prefix and are about as long as asked", () => {
    const [one, other] = [fillerCase(1, 500, 10, 3), fillerCase(2, 500, 10, 3)];
    assert.notEqual(one.messages[0]?.content?.slice(0, 1), other.messages[0]?.content?.slice(0, 1));
    assert.equal(one.messages[0]?.content?.split(" ").length, 502);
    assert.deepEqual(fillerCase(1, 500, 10, 3), one);
  });

  test("the gauge is read under both of its names, and nonsense is not", () => {
    assert.equal(
      readUsage('vllm:kv_cache_usage_perc{engine="0"} 0.5\nvllm:kv_cache_usage_perc{engine="1"} 0.75\n'),
      0.75,
    );
    assert.equal(readUsage("vllm:gpu_cache_usage_perc 1.0\n"), 1);
    assert.equal(readUsage("vllm:kv_cache_usage_perc NaN\nvllm:kv_cache_usage_perc_total 0.5\n"), undefined);
    assert.equal(readUsage(""), undefined);
  });
});

describe("collecting for replica skew", () => {
  test("every replica answers every case, in turns, and is known by whom was asked", async () => {
    const sent: Sent[] = [];
    const replicas = ["a", "b", "c"].map((name) =>
      watched(name, sent, (one) => (name === "b" ? "wrong" : rightFor(one))),
    );
    const { result } = await checkNamed("replica-skew").run(
      bedOf(replicas[0]!, { replicas, cases: casesOf(60) }),
      {},
    );
    assert.deepEqual(
      sent.slice(0, 6).map(({ target }) => target),
      ["a", "b", "c", "b", "c", "a"],
    );
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /^A replica is not like the others: b: exact below/);
  });
});

describe("collecting for the tail", () => {
  test("a server that gives no logprobs is asked without", async () => {
    const sent: Sent[] = [];
    const candidate = watched("candidate", sent, (one, body) =>
      body["logprobs"] === true
        ? { failure: { code: "http_400", httpStatus: 400, message: "logprobs are not supported" } }
        : rightFor(one),
    );
    const { observations } = await checkNamed("tail").run(bedOf(candidate), { concurrency: 1 });
    assert(observations.every(({ failureCode }) => failureCode === undefined));
    assert.equal(sent.filter(({ body }) => body["logprobs"] === true).length, 1);
  });

  const text = "one two three four five six seven eight";
  const tokens = text.split(/(?= )/).map((word) => ({ text: word, logprob: -1 }));

  test("answers are scored by place, in tokens", async () => {
    const candidate = functionTarget("c", () => ({
      text: text.replace("seven", "oops"),
      tokens: tokens.map((token) => (token.text === " seven" ? { ...token, text: " oops" } : token)),
      usage: { promptTokens: 900, completionTokens: 8, cachedTokens: 0 },
    }));
    const cases = casesOf(1).map((one) => ({ ...one, expected: { outputs: [text] } }));
    const { observations } = await checkNamed("tail").run(bedOf(candidate, { cases }), {
      part_tokens: 4,
      output_edges: [6],
      part_evaluators: ["exact"],
    });
    const parts = observations[0]!.parts!;
    assert.deepEqual(
      parts.filter(({ evaluator }) => evaluator === "reference_agreement"),
      [
        { evaluator: "reference_agreement", fromToken: 0, toToken: 4, value: 1 },
        { evaluator: "reference_agreement", fromToken: 4, toToken: 6, value: 2 / 3 },
        { evaluator: "reference_agreement", fromToken: 6, toToken: 8, value: 1 },
      ],
    );
    assert.equal(parts.filter(({ evaluator }) => evaluator === "exact").length, 3);
    const slices = observations[0]!.slices!.filter(({ evaluator }) => evaluator === "reference_agreement");
    assert.deepEqual(
      slices.map(({ fromToken, toToken }) => [fromToken, toToken]),
      [
        [0, 6],
        [6, 8],
      ],
    );
    await assert.rejects(
      checkNamed("tail").run(bedOf(candidate, { cases }), { part_evaluators: ["nope"] }),
      /nope/,
    );
  });

  test("parts end at edges and cover the text, whether tokens are known or not", () => {
    for (const offsets of [tokenOffsets(text, tokens, 8), tokenOffsets(text, undefined, 8)]) {
      const parts = splitAnswer(text, offsets, 3, [4]);
      assert.equal(parts.map((part) => part.text).join(""), text);
      assert.deepEqual(
        parts.map(({ fromToken, toToken }) => [fromToken, toToken]),
        [
          [0, 3],
          [3, 4],
          [4, 7],
          [7, 8],
        ],
      );
    }
    assert.equal(tokenOffsets(text, tokens, 8).isExact, true);
    assert.equal(tokenOffsets(text, [...tokens, { text: "<|im_end|>", logprob: 0 }], 9).isExact, true);
    assert.equal(tokenOffsets(text, tokens.slice(1), 7).isExact, false);
    assert.deepEqual(splitAnswer("", tokenOffsets("", undefined, 0), 3, []), []);
  });

  test("a word that is missing stands where it should have been", () => {
    const offsets = tokenOffsets(text, tokens, 8);
    const words = agreementWith("one two 2½ three four five six seven eight nine", text, offsets)!;
    assert.deepEqual(
      words.filter(({ isThere }) => !isThere).map(({ token }) => token),
      [1, 7],
    );
    assert.deepEqual(agreementWith("", "", tokenOffsets("", undefined, 0)), []);
    assert.equal(agreementWith("a ".repeat(7_000), "a", offsets), undefined);
  });
});

describe("A/A runs on what was collected", () => {
  test("with conditions dealt by chance, checks seldom fail", async () => {
    let draw = 0;
    const unstable = functionTarget("c", (one) => (++draw % 5 === 0 ? "wrong" : rightFor(one)));
    const bed = bedOf(unstable, {
      baseline: unstable,
      replicas: [unstable, unstable, unstable],
      cases: casesOf(40),
    });
    for (const name of ["quantization", "eviction", "replica-skew", "tail", "eviction-burst"]) {
      const quick =
        name === "eviction-burst" ? { burst_lead_ms: 0, burst_in_flight: 1, most_fillers: 1 } : {};
      const row = checkNamed(name);
      const { observations } = await row.run(bed, quick);
      const alarms = row.falseAlarms(observations, {}, { runs: 100, seed: 1 })!;
      assert(alarms.failed <= 10, `${name}: ${JSON.stringify(alarms)}`);
      assert.equal(alarms.runs, 100);
    }
  });
});
