import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sampleOf } from "../evaluators/testing/sample.js";
import { chatCompletion, replyJson, startFakeOpenAi } from "../testing/fake-openai-server.js";
import { openAiTarget } from "./openai-target.js";

const { signal } = new AbortController();

const oneCase = sampleOf({ case: { id: "1" } }).case;

describe("the server of a target", () => {
  it("fails with `connection` where no server listens", async () => {
    const server = await startFakeOpenAi({});
    await server[Symbol.asyncDispose]();
    const answer = await openAiTarget({ name: "x", baseUrl: server.baseUrl }).answer(oneCase, { signal });
    assert.equal(answer.failure?.code, "connection");
  });

  it("rejects when its signal is aborted, before and while it waits", async () => {
    await using server = await startFakeOpenAi({ "/v1/chat/completions": () => undefined });
    const target = openAiTarget({ name: "x", baseUrl: server.baseUrl, model: "m", servingRecord: "never" });
    const reason = new Error("enough");
    await assert.rejects(target.answer(oneCase, { signal: AbortSignal.abort(reason) }), reason);
    const controller = new AbortController();
    const answering = target.answer(oneCase, { signal: controller.signal });
    setTimeout(() => controller.abort(reason), 30);
    await assert.rejects(answering, reason);
  });

  it("asks only Octavo for digests of its logits", async () => {
    for (const [owner, digests] of [
      ["octavo", ["0123456789abcdef", "f"]],
      ["vllm", undefined],
    ] as const) {
      await using server = await startFakeOpenAi({
        "/v1/models": (_, response) => replyJson(response, 200, { data: [{ id: "m", owned_by: owner }] }),
        "/v1/chat/completions": ({ body }, response) => {
          const isAsked =
            "octavo" in body && JSON.stringify(body["octavo"]).includes("include_logits_digest");
          const octavo = { logits_digests: [["0123456789abcdef", "f"]] };
          const answer = chatCompletion("Hi") as object;
          replyJson(response, 200, isAsked ? { ...answer, octavo } : answer);
        },
      });
      const target = openAiTarget({ name: "candidate", baseUrl: server.baseUrl });
      const answer = await target.answer(oneCase, { signal, wantsDigests: true });
      assert.deepEqual(answer.logitsDigests, digests);
      assert.equal((await target.answer(oneCase, { signal })).logitsDigests, undefined);
    }
  });

  it("reads what the server counts, beside the version segment", async () => {
    await using server = await startFakeOpenAi({
      "/metrics": (_, response) => void response.end("vllm:kv_cache_usage_perc 0.25\n"),
    });
    const target = openAiTarget({ name: "candidate", baseUrl: server.baseUrl });
    assert.equal(await target.metrics(signal), "vllm:kv_cache_usage_perc 0.25\n");
    await using silent = await startFakeOpenAi({});
    const other = openAiTarget({ name: "candidate", baseUrl: silent.baseUrl });
    assert.equal(await other.metrics(signal), undefined);
  });

  it("reads the neighbours of a request; a malformed list reads as unknown", async () => {
    const neighbour = {
      request_id: "b",
      tenant: "_other",
      arrival_offset_ms: -3,
      prompt_tokens: 40,
      cached_tokens: 8,
      output_tokens: [2, 3],
      kernel_ms_meanwhile: 7.5,
    };
    const asked: unknown[] = [];
    await using server = await startFakeOpenAi({
      "/v1/requests/a%2F0/neighbours": ({ headers }, response) => {
        asked.push([headers["x-tenant-id"], headers.authorization]);
        replyJson(response, 200, { request: {}, neighbours: [neighbour, { request_id: 3 }], num_omitted: 0 });
      },
      "/v1/requests/odd/neighbours": (_, response) => replyJson(response, 200, { neighbours: "none" }),
    });
    const target = openAiTarget({ name: "candidate", baseUrl: server.baseUrl });
    assert.deepEqual(await target.neighbours("a/0", undefined, signal), [
      {
        requestId: "b",
        arrivalOffsetMs: -3,
        promptTokens: 40,
        cachedTokens: 8,
        outputTokens: 5,
        kernelMs: 7.5,
      },
    ]);
    assert.equal(await target.neighbours("odd", undefined, signal), undefined);
    assert.equal(await target.neighbours("unknown", undefined, signal), undefined);
    const keyed = openAiTarget({ name: "keyed", baseUrl: server.baseUrl, tenantKeys: { b: "of b" } });
    for (const tenant of ["a", "b"]) await keyed.neighbours("a/0", tenant, signal);
    const expected = [
      [undefined, undefined],
      ["a", undefined],
      [undefined, "Bearer of b"],
    ];
    assert.deepEqual(asked, expected, "a record is its tenant's");
  });

  it("refuses a base URL that is none", () => {
    assert.throws(() => openAiTarget({ name: "x", baseUrl: "localhost:8000" }), { code: "invalid_option" });
    const urls = ["http://h:1", "http://h:1/", "http://h:1/v1/", "http://h:1/openai/v2"];
    assert.deepEqual(
      urls.map((baseUrl) => openAiTarget({ name: "x", baseUrl }).server.baseUrl),
      ["http://h:1/v1", "http://h:1/v1", "http://h:1/v1", "http://h:1/openai/v2"],
    );
  });
});
