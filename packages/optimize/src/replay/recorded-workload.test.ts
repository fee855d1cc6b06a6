import assert from "node:assert/strict";
import { test } from "node:test";
import { wantedCalls } from "@octavo/evals";
import { type RecordedCall, recordedWorkload, scheduleOf } from "./recorded-workload.js";

const call = (
  at: number,
  attributes: Readonly<Record<string, unknown>>,
  isOfCluster = false,
): RecordedCall => ({
  span: wantedCalls(
    {
      traceId: String(at).padStart(32, "0"),
      spanId: String(at).padStart(16, "0"),
      startTimeUnixNano: `${1_760_000_000_000 + at}000000`,
      endTimeUnixNano: `${1_760_000_000_900 + at}000000`,
      attributes: { "gen_ai.operation.name": "chat", ...attributes },
    },
    {},
  )[0]!,
  isOfCluster,
});
const answered = (prompt: number, output: number, cached = 0) => ({
  "gen_ai.usage.input_tokens": prompt,
  "gen_ai.usage.output_tokens": output,
  "octavo.cache_hit_ratio": cached / prompt,
});

test("arrivals, tenants and lengths are the recording's; refused requests have those of answered ones", () => {
  const { requests, numRecorded, numWithPrompts } = recordedWorkload(
    [
      call(400, { "error.type": "queue_full", "octavo.tenant.id": "b" }, true),
      call(100, { ...answered(50, 8, 20), "octavo.tenant.id": "a" }),
      call(900, { "error.type": "context_length_exceeded", "octavo.refused.input_tokens": "700" }, true),
      call(250, {
        ...answered(30, 6),
        "gen_ai.request.max_tokens": 9,
        "gen_ai.input.messages": JSON.stringify([{ role: "user", parts: [{ type: "text", content: "hi" }] }]),
      }),
    ],
    10,
  );
  assert.deepEqual(
    requests.map(({ atMs, tenant, promptTokens, cachedTokens, outputTokens, isOfCluster }) => [
      Math.round(atMs),
      tenant,
      promptTokens,
      cachedTokens,
      outputTokens,
      isOfCluster,
    ]),
    [
      [0, "a", 50, 20, 8, false],
      [150, undefined, 30, 0, 6, false],
      [300, "b", 50, 0, 8, true],
      [800, undefined, 700, 0, 6, true],
    ],
  );
  assert.deepEqual([numRecorded, numWithPrompts], [4, 1]);
  assert.equal(requests[1]!.asked?.messages[0]?.content, "hi");
});

test("the stretch with most of the cluster is replayed", () => {
  const calls = Array.from({ length: 30 }, (_, at) => call(at, answered(10, 2), at >= 20 && at < 24));
  const { requests } = recordedWorkload(calls, 6);
  assert.equal(requests.length, 6);
  assert.equal(requests.filter(({ isOfCluster }) => isOfCluster).length, 4);
  assert.throws(
    () => recordedWorkload([call(1, answered(10, 2))], 6),
    /none of the recorded calls is of this/,
  );
});

test("text in place of a prompt has its length, and begins as its tenant's others as far as it was cached", () => {
  const tenant = (name: string) => ({ ...answered(100, 8, 60), "octavo.tenant.id": name });
  const workload = recordedWorkload(
    [call(0, tenant("a"), true), call(10, tenant("a")), call(20, tenant("b"))],
    9,
  );
  const schedule = scheduleOf(workload, { scale: { base: 10, perWord: 2 }, seed: 1, speedup: 2 });
  const [first, second, other] = schedule.map(({ evalCase }) => evalCase.messages[0]!.content!.split(" "));
  assert.deepEqual([first!.length, second!.length], [45, 45]);
  assert.deepEqual(first!.slice(0, 25), second!.slice(0, 25));
  assert.notDeepEqual(first!.slice(25), second!.slice(25));
  assert.notDeepEqual(first!.slice(0, 25), other!.slice(0, 25));
  assert.deepEqual(
    schedule.map(({ atMs }) => Math.round(atMs)),
    [0, 5, 10],
  );
  assert.equal(schedule[0]!.evalCase.parameters.extraBody?.["min_tokens"], 8);
});
