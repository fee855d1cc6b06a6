import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayMetrics } from "../ledger/gateway-metrics.js";
import { openLedgerEntry } from "../exchange/ledger-entry.js";
import { mergeMetrics } from "./merged-metrics.js";

/** What one process says after so many calls. */
function saidAfter(calls: number, errors: number): string {
  const metrics = new GatewayMetrics(
    () => [],
    () => calls,
    () => 0,
  );
  for (let call = 0; call < calls; call += 1) {
    const entry = openLedgerEntry({ requestId: "r", traceId: "t", arrivedEpochMs: 0, operation: "chat" });
    entry.route = 'a "route"';
    entry.status = call < errors ? 500 : 200;
    entry.durationMs = 100 * (call + 1);
    metrics.record(entry);
  }
  return metrics.registry.expose();
}

test("what several processes counted is what one would have counted", () => {
  const [one, other] = [saidAfter(3, 1), saidAfter(5, 1)];
  const merged = mergeMetrics([one, other]);
  assert.equal(mergeMetrics([one]), one, "of one process nothing changes");
  const valueOf = (series: string): number =>
    Number(
      merged
        .split("\n")
        .find((line) => line.startsWith(`${series} `))
        ?.split(" ")
        .at(-1),
    );
  const labels = (status: number): string =>
    String.raw`{route="a \"route\"",operation="chat",status="${status}",code="ok"}`;
  assert.equal(valueOf(`octavo_gateway_requests_total${labels(200)}`), 6);
  assert.equal(valueOf(`octavo_gateway_requests_total${labels(500)}`), 2);
  assert.equal(valueOf("octavo_gateway_requests_in_flight"), 8);
  assert.equal(valueOf(String.raw`octavo_gateway_request_duration_seconds_count{route="a \"route\""}`), 8);
  assert.equal(
    valueOf(String.raw`octavo_gateway_request_duration_seconds_bucket{route="a \"route\"",le="0.25"}`),
    4,
  );
  assert.equal(merged.match(/# TYPE octavo_gateway_requests_total /g)?.length, 1);
});

test("a process that ended goes on in the counters, and not in the gauges", () => {
  const merged = mergeMetrics([saidAfter(2, 0)], [saidAfter(4, 0)]);
  assert.match(merged, /octavo_gateway_requests_total\{[^}]*status="200"[^}]*\} 6\n/);
  assert.match(merged, /octavo_gateway_requests_in_flight 2\n/);
});

test("a target is as well as the process that finds it worst", () => {
  const said = (healthy: number, breaker: number): string =>
    `# HELP octavo_gateway_target_healthy h\n# TYPE octavo_gateway_target_healthy gauge\noctavo_gateway_target_healthy{target="a"} ${healthy}\n# HELP octavo_gateway_target_breaker b\n# TYPE octavo_gateway_target_breaker gauge\noctavo_gateway_target_breaker{target="a"} ${breaker}\n`;
  assert.equal(mergeMetrics([said(1, 0), said(0, 2), said(1, 1)]), said(0, 2));
});
