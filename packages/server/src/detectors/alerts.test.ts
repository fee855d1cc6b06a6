import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { resolveServerConfig } from "../resolve-config.js";
import { startTestServer } from "../testing/test-server.js";
import type { Finding } from "./alert.js";
import { type Alert, AlertCenter, alertText } from "./alert-center.js";
import { AlertWebhook } from "./alert-webhook.js";
import { resolveThresholds } from "./thresholds.js";

const finding: Finding = {
  detector: "decode_latency",
  form: "sequential",
  tenant: undefined,
  reason: "prefill-burst",
  reasons: [{ reason: "prefill-burst", share: 1 }],
  value: 0.5,
  baseline: 0.1,
  threshold: 0.2,
  unit: "seconds",
  samples: 1000,
  evidence: 1e8,
  exampleRequestId: "slow",
};

const firing: Alert = {
  ...finding,
  status: "firing",
  startsAtMs: 0,
  endsAtMs: undefined,
  example: undefined,
};

interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly bodies: { readonly status: string; readonly commonLabels: Readonly<Record<string, string>> }[];
  readonly headers: IncomingHttpHeaders[];
  requests: number;
}

/** Answers with the statuses in turn, then 200. */
async function startReceiver(statuses: readonly number[]): Promise<Receiver> {
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (piece: Buffer) => (text += piece.toString("utf8")));
    request.on("end", () => {
      const status = statuses[receiver.requests] ?? 200;
      receiver.requests += 1;
      receiver.headers.push(request.headers);
      if (status < 300) receiver.bodies.push(JSON.parse(text) as Receiver["bodies"][number]);
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    bodies: [],
    headers: [],
    requests: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return receiver;
}

describe("alerts", () => {
  it("start once and resolve once, with the culprits", () => {
    const told: Alert[] = [];
    const center = new AlertCenter({
      evidence: {
        request: (requestId) => ({
          requestId,
          tenant: "a",
          isOver: false,
          record: {} as never,
          firstToken: undefined,
          slowGaps: [
            {
              ms: 5,
              usualMs: 1,
              cause: "prefill_burst",
              sequence: 0,
              output: 1,
              step: 1,
              parts: [
                {
                  cause: "prefill_burst",
                  ms: 5,
                  requests: [{ requestId: "big", tenant: "large", ms: 5, tokens: 900 }],
                },
              ],
            },
          ],
        }),
      },
      onAlert: (alert) => told.push(alert),
      epochNow: () => 1000,
    });
    center.update([finding]);
    center.update([
      { ...finding, value: 0.7, reason: "host-stall" },
      { ...finding, tenant: "t" },
    ]);
    assert.equal(center.active.length, 2);
    assert.equal(center.active[0]?.value, 0.7);
    center.update([]);
    assert.deepEqual(
      told.map(({ status, tenant, reason }) => [status, tenant, reason]),
      [
        ["firing", undefined, "prefill-burst"],
        ["firing", "t", "prefill-burst"],
        ["resolved", undefined, "prefill-burst"],
        ["resolved", "t", "prefill-burst"],
      ],
    );
    assert.deepEqual(told[0]?.example, {
      requestId: "slow",
      culprits: [{ requestId: "big", tenant: "large" }],
    });
    assert.equal(
      alertText(told[0]),
      "decode latency firing: 0.5 s, usually 0.1 s, allowed 0.2 s; reason: prefill-burst",
    );
  });

  it("are posted in order, in Alertmanager's format, and retried if the receiver is busy", async () => {
    await using receiver = await startReceiver([503, 200, 429, 200]);
    const webhook = new AlertWebhook({
      url: receiver.url,
      headers: { authorization: "Bearer key" },
      modelName: "mini",
      retryMs: 1,
    });
    webhook.add(firing);
    webhook.add({ ...firing, status: "resolved", endsAtMs: 5, tenant: "acme" });
    await webhook.close(10_000);
    assert.deepEqual(
      receiver.bodies.map(({ status }) => status),
      ["firing", "resolved"],
    );
    assert.deepEqual(receiver.bodies[1]?.commonLabels, {
      alertname: "Octavo_decode_latency",
      detector: "decode_latency",
      form: "sequential",
      reason: "prefill-burst",
      model_name: "mini",
      tenant: "acme",
    });
    assert.equal(receiver.headers[0]?.authorization, "Bearer key");
    assert.equal(webhook.delivered, 2);
  });

  it("that cannot be delivered are counted, and block nothing", async () => {
    await using receiver = await startReceiver([400, 500, 500, 500, 500, 500]);
    const problems: string[] = [];
    const webhook = new AlertWebhook({
      url: receiver.url,
      headers: {},
      modelName: "mini",
      retryMs: 1,
      maxWaiting: 2,
      onProblem: (message) => problems.push(message),
    });
    for (let index = 0; index < 5; index += 1) webhook.add(firing);
    await webhook.close(10_000);
    // the first is refused for good, the second given up after five tries; one is being sent, two wait, two are dropped
    assert.deepEqual([webhook.failed, webhook.delivered, webhook.dropped], [2, 1, 2]);
    assert.match(problems[0] ?? "", /could not be delivered.*answered 400/);
    webhook.add(firing);
    assert.equal(webhook.dropped, 3);
    const nobody = new AlertWebhook({
      url: "http://127.0.0.1:1/",
      headers: {},
      modelName: "m",
      retryMs: 60_000,
    });
    nobody.add(firing);
    await nobody.close(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(nobody.failed, 1);
  });
});

describe("the configuration of detectors", () => {
  it("refuses what makes no sense, by name", () => {
    assert.equal(resolveThresholds({ kvUsage: 0.85 }).kvUsage, 0.85);
    for (const [config, expected] of [
      [{ detectorThresholds: { kvUsage: 2 } }, /kvUsage: expected a number from 0.01 to 1, got 2/],
      [{ detectorThresholds: { weather: 1 } }, /there is no threshold weather; they are decodeLatencyFactor/],
      [{ detectorThresholds: { kvUsage: Number.NaN } }, /kvUsage: expected/],
      [{ alertWebhook: "ftp://x" }, /alertWebhook: expected an http or https address/],
      [{ alertWebhook: "http://x", enableDetectors: false }, /there are no alerts while detectors are off/],
    ] as const) {
      assert.throws(
        () => resolveServerConfig(config),
        (error) =>
          error instanceof OctavoError && error.code === "invalid_option" && expected.test(error.message),
      );
    }
  });

  it("turns detectors off, and keeps their metrics", async () => {
    await using server = await startTestServer({ enableDetectors: false });
    await (await server.post("/v1/completions", { prompt: "a", max_tokens: 3 })).text();
    const text = await (await fetch(`${server.url}/metrics`)).text();
    assert.match(text, /# TYPE octavo:alerts_firing gauge/);
  });
});
