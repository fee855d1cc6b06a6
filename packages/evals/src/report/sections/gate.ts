import { escapeHtml, formatInterval, formatValue, table, ratingBadge } from "@octavo/report";
import type { GateItem, GateResult } from "../../gate/gate-result.js";

const dimensionNames: Readonly<Record<GateItem["dimension"], string>> = {
  latency: "Latency",
  throughput: "Throughput",
  error_rate: "Error rate",
  cost: "Cost",
  quality: "Quality",
  check: "Serving checks",
};

/** Every assertion by the dimension of health it is about. */
export function gateSection(gate: GateResult): string {
  const assertions = table(
    "Assertions: an interval that lies on the right side of the bound passes, on the wrong side fails",
    ["expected", "verdict", "measured", "interval", "of", "by", "if it fails"],
    gate.items
      .filter(({ dimension }) => dimension !== "check")
      .map((item) => [
        {
          html: `<code>${escapeHtml(item.expectation)}</code><small>${escapeHtml(dimensionNames[item.dimension])}</small>`,
        },
        { html: ratingBadge(item.verdict) },
        formatValue(item.estimate, item.unit),
        formatInterval(item.interval, item.unit),
        String(item.numObservations),
        item.method,
        item.onFail === "warn" ? "warns" : "stops the release",
      ]),
    [2, 3, 4],
  );
  const checks = gate.items.filter(({ dimension }) => dimension === "check");
  const list =
    checks.length === 0
      ? ""
      : `<p>Serving checks: ${checks.map(({ expectation, verdict, onFail }) => `<a href="#check-${escapeHtml(expectation)}">${escapeHtml(expectation)}</a> ${ratingBadge(verdict)}${onFail === "warn" ? " (warns)" : ""}`).join(", ")}</p>`;
  return `<p>${escapeHtml(gate.summary)} Exit code ${gate.exitCode}.</p>${gate.items.length > checks.length ? assertions : ""}${list}`;
}
