import assert from "node:assert/strict";
import test, { describe } from "node:test";
import type { ServingRecordInfo } from "@octavo/protocol";
import type { Answer } from "../../answers/answer.js";
import type { Target } from "../../targets/target.js";
import { checkNamed } from "../table.js";
import { bedOf, type Body, testCases, rightFor, type Sent, watched } from "../testing/test-bed.js";

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
    const cases = testCases(90);
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

  test("a server without fault injection is asked with the prompt cached, then under an unused salt", async () => {
    const sent: Sent[] = [];
    const cases = testCases(90);
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
