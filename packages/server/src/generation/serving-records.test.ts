import assert from "node:assert/strict";
import { it } from "node:test";
import type { Explanation, RequestEvidence } from "@octavo/engine";
import { plainServingRecord } from "@octavo/engine/testing";
import { resolveServerConfig } from "../resolve-config.js";
import type { Service } from "../service.js";
import { otherTenants } from "../tenants/tenant-labels.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { startTestServer } from "../testing/test-server.js";
import { servingRecordInfo } from "./serving-records.js";

const firstToken: Explanation = {
  ms: 9,
  cause: "queue",
  parts: [
    {
      cause: "queue",
      ms: 8,
      requests: [
        { requestId: "x", tenant: "acme", ms: 5, tokens: 50 },
        { requestId: "y", tenant: "own", ms: 3, tokens: 30 },
      ],
      tenants: [
        { tenant: "acme", ms: 4, tokens: 40 },
        { tenant: "own", ms: 3, tokens: 30 },
        { tenant: "rival", ms: 1, tokens: 10 },
      ],
    },
    { cause: "prefill", ms: 1, tokens: 4 },
  ],
};
const evidence: RequestEvidence = {
  requestId: "r",
  tenant: "own",
  isOver: true,
  record: plainServingRecord,
  firstToken,
  slowGaps: [{ ...firstToken, sequence: 0, output: 1, step: 2, usualMs: 1 }],
};

const keys = [
  { key: "ours", tenant: "own" },
  { key: "theirs", tenant: "rival" },
];

function serving(tenants: Partial<typeof defaultTenantSettings>): Pick<Service, "config"> {
  return { config: resolveServerConfig({ tenants: { ...defaultTenantSettings, ...tenants } }) };
}

it("a record names other tenants, unless keys belong to tenants", () => {
  const open = servingRecordInfo(serving({}), evidence);
  assert.deepEqual(open.first_token?.parts[0]?.tenants, firstToken.parts[0]?.tenants);
  const closed = servingRecordInfo(serving({ keys }), evidence);
  assert.doesNotMatch(JSON.stringify(closed), /\b(acme|rival)/);
  for (const explained of [closed.first_token, closed.slow_gaps[0]]) {
    const [queue, prefill] = explained?.parts ?? [];
    assert.deepEqual(queue?.tenants, [
      { tenant: otherTenants, ms: 5, tokens: 50 },
      { tenant: "own", ms: 3, tokens: 30 },
    ]);
    assert.deepEqual(
      queue.requests?.map(({ tenant, ms }) => [tenant, ms]),
      [
        [otherTenants, 5],
        ["own", 3],
      ],
    );
    assert.deepEqual(prefill, { cause: "prefill", ms: 1, tokens: 4 });
  }
});

it("a tenant's key cannot read another tenant's records", async () => {
  const tenants = { ...defaultTenantSettings, keys };
  await using server = await startTestServer({ tenants }, { reply: () => "x" });
  const made = await server.post("/v1/completions", { prompt: "a" }, { authorization: "Bearer ours" });
  const id = made.headers.get("x-octavo-request-id");
  for (const [key, status] of [
    ["ours", 200],
    ["theirs", 404],
  ] as const) {
    const headers = { authorization: `Bearer ${key}` };
    assert.equal((await fetch(`${server.url}/v1/requests/${id}`, { headers })).status, status);
  }
});
