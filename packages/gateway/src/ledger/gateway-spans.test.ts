import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { beginAttempt, openLedgerEntry } from "../exchange/ledger-entry.js";
import type { LiveExchange } from "../exchange/live-exchange.js";
import { GatewaySpans } from "./gateway-spans.js";

test("a span tells the first attempt that a target failed, and nothing of those that were only left", async () => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString("utf8")));
    request.on("end", () => {
      bodies.push(body);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    const spans = new GatewaySpans({
      otlp_endpoint: `http://127.0.0.1:${port}`,
      headers: {},
      sample_ratio: 1,
    });
    for (const [at, outcomes] of [["ok"], ["cancelled", "ok"], ["target_timeout", "ok"]].entries()) {
      const ledger = openLedgerEntry({
        requestId: `req-${at}`,
        traceId: String(at + 1).repeat(32),
        arrivedEpochMs: 1000,
        operation: "chat",
      });
      for (const [index, outcome] of outcomes.entries()) {
        const attempt = beginAttempt({
          target: `target-${index}`,
          model: "m",
          reason: index === 0 ? "first" : "fallback",
          startedMs: 0,
          predictedCachedTokens: undefined,
        });
        ledger.attempts.push({ ...attempt, outcome: outcome as typeof attempt.outcome });
      }
      const trace = {
        traceId: ledger.traceId,
        spanId: "b".repeat(16),
        isSampled: true,
        traceState: undefined,
      };
      spans.record({ ledger, trace, operation: "chat" } as unknown as LiveExchange, undefined);
    }
    await spans.close();
    const sent = bodies.join("\n");
    assert.equal(sent.match(/octavo\.gateway\.failed_target/g)?.length, 1);
    assert.match(sent, /"octavo\.gateway\.failed_target","value":\{"stringValue":"target-0"\}/);
    assert.match(sent, /"octavo\.gateway\.failed_outcome","value":\{"stringValue":"target_timeout"\}/);
  } finally {
    server.close();
  }
});
