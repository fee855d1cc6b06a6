/**
 * One page of HTML that says what a rollout decided and what the decision rests on. `report` is what the gateway's admin port says
 * of the rollout, `progress` its evidence after each call, `example` a prompt with both arms' answers.
 */
export function rolloutPage(kit, { report, progress, example, served, seconds }) {
  const { drawChart, escapeHtml, significant, intervalChart, ratingBadge, renderPage, section, table } = kit;
  const last = report.journal.at(-1);
  const isRolledBack = report.status === "rolled_back";
  const points = (value) => (value === undefined || value === null ? "" : (100 * value).toFixed(1));
  const headline = isRolledBack ? "Rolled back" : `Not rolled back: ${report.status}`;
  const rating = isRolledBack ? "fail" : "inconclusive";
  const decisions = report.journal.map(({ atMs, decision, by, reason, fromStage, toStage, pairs }) => [
    new Date(atMs)
      .toISOString()
      .replace("T", " ")
      .replace(/\.\d+Z$/, " UTC"),
    decision,
    by,
    `${fromStage} → ${toStage}`,
    String(pairs),
    reason,
  ]);
  const gates = (last?.gates ?? report.gates).map(({ gate, pairs, meanDifference, interval, harm }) => [
    gate,
    String(pairs),
    points(meanDifference),
    interval === undefined ? "" : `${points(interval[0])} to ${points(interval[1])}`,
    significant(harm, 1),
  ]);
  const chart = drawChart({
    kind: "series",
    title: "Evidence of harm, all gates together",
    xLabel: "paired requests",
    yLabel: "e-value",
    lines: [{ label: "evidence", points: progress.map(({ pairs, harm }) => [pairs, harm]) }],
    threshold: report.harm_threshold,
  });
  const intervals = intervalChart({
    title: "How much better the canary does",
    unit: "points",
    rows: (last?.gates ?? []).map(({ gate, meanDifference, interval }) => ({
      label: gate,
      estimate: 100 * (meanDifference ?? 0),
      interval: interval?.map((end) => 100 * end),
      margin: 0,
    })),
  });
  const answer = (title, text) => `<h3>${title}</h3><pre>${escapeHtml(text)}</pre>`;
  return renderPage({
    title: `Rollout ${report.rollout}: ${headline}`,
    skip: "to the decision",
    styles: "pre{white-space:pre-wrap;overflow-wrap:anywhere}",
    body: [
      `<header class="top ${rating}"><p class="kicker">octavo gateway</p><h1>${escapeHtml(headline)}</h1>`,
      `<p class="name">${escapeHtml(report.rollout)}</p><p class="why">${escapeHtml(last?.reason ?? "no decision was made")}</p></header>`,
      '<main id="main">',
      section(
        "why",
        "Why",
        `<p>${ratingBadge(rating)} Each paired request was answered by both arms, and every gate compared the two answers. If the canary were no worse than the primary, the evidence below would ever reach ${significant(report.harm_threshold, 0)} in ${significant(100 / report.harm_threshold, 1)} of 100 rollouts at most, however often one looks.</p>` +
          chart +
          table(
            "What the gates saw",
            ["gate", "pairs", "mean difference, points", "95 % at every look", "e-value of harm"],
            gates,
            [1, 2, 3, 4],
          ) +
          intervals,
      ),
      section(
        "clients",
        "What clients saw",
        `<p>${served.total} calls in ${seconds} s; ${served.canary} were answered by the canary, ${served.canaryAfter} of the ${served.after} after the decision.</p>`,
      ),
      section(
        "example",
        "One prompt, both answers",
        answer("Prompt", example.prompt) +
          answer("Primary", example.primary) +
          answer("Canary", example.canary),
      ),
      section(
        "journal",
        "Journal",
        table("Decisions", ["when", "decision", "by", "stage", "pairs", "reason"], decisions, [4]),
      ),
      "</main>",
    ],
  });
}
