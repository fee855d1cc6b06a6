import { clip, escapeHtml, formatDuration, formatValue, shorten, significant } from "@octavo/report";
import type { Score } from "../../evaluators/evaluator.js";
import type { CaseRow, ScoredAnswer } from "../../run/case-row.js";
import { answerText, type CaseState, caseState, caseStates } from "../case-state.js";
import { diffHtml } from "../word-diff.js";

const mostCharacters = 4000;

const stateNames: Readonly<Record<CaseState, string>> = {
  regressed: "regressed",
  failing: "failing",
  improved: "improved",
  changed: "another text",
  passing: "passing",
  same: "unchanged",
};

/**
 * The list of cases with their answers' differences, drawn until `maxBytes` are spent; the page's script filters it by what
 * stands in the attributes.
 */
export function caseSection(rows: readonly CaseRow[], numCases: number, maxBytes: number): string {
  if (rows.length === 0) return "";
  const states = rows.map((row) => ({ row, state: caseState(row) }));
  states.sort((a, b) => caseStates.indexOf(a.state) - caseStates.indexOf(b.state));
  const items: string[] = [];
  let bytes = 0;
  for (const { row, state } of states) {
    const item = caseItem(row, state);
    bytes += Buffer.byteLength(item);
    if (bytes > maxBytes) break;
    items.push(item);
  }
  const counts = caseStates.flatMap((state) => {
    const count = states.filter((entry) => entry.state === state).length;
    return count === 0 ? [] : [{ state, count }];
  });
  const leftOut = numCases - items.length;
  return (
    `<form class="filter" hidden role="search" aria-label="Cases"><label>Search <input type="search" name="text" autocomplete="off" spellcheck="false"></label>` +
    `<fieldset><legend>Show</legend><label><input type="radio" name="state" value="" checked> all ${significant(items.length, 0)}</label>` +
    `${counts.map(({ state, count }) => `<label><input type="radio" name="state" value="${state}"> ${stateNames[state]} ${significant(count, 0)}</label>`).join("")}</fieldset>` +
    `<output aria-live="polite"></output></form>` +
    (leftOut > 0
      ? `<p class="note">The ${significant(items.length, 0)} cases most worth seeing of ${significant(numCases, 0)}; the JSON output and the journal have more.</p>`
      : "") +
    `<div class="cases">${items.join("")}</div>`
  );
}

function caseItem(row: CaseRow, state: CaseState): string {
  const candidate = row.answers["candidate"] ?? Object.values(row.answers)[0];
  const baseline = row.answers["baseline"] === candidate ? undefined : row.answers["baseline"];
  const tags = row.tags.slice(0, 8).map((tag) => `<i class="tag">${escapeHtml(shorten(tag, 40))}</i>`);
  return (
    `<details data-state="${state}"><summary><span class="state ${state}">${stateNames[state]}</span> <code>${escapeHtml(shorten(row.caseId, 80))}</code> <span class="first">${escapeHtml(shorten(row.input.replaceAll(/\s+/g, " "), 110))}</span></summary>` +
    `<div class="body"><p>${tags.join(" ")}</p><h4>Asked</h4><p class="answer">${escapeHtml(clip(row.input, mostCharacters))}</p>` +
    (row.expected === undefined
      ? ""
      : `<h4>Expected</h4><p class="answer">${escapeHtml(clip(row.expected, mostCharacters))}</p>`) +
    answers(baseline, candidate) +
    `</div></details>`
  );
}

function answers(baseline: ScoredAnswer | undefined, candidate: ScoredAnswer | undefined): string {
  if (candidate === undefined) return "";
  const text = answerText(candidate);
  if (baseline === undefined)
    return `<h4>Answered ${facts(candidate)}</h4><p class="answer">${escapeHtml(clip(text, mostCharacters))}</p>${scores(candidate)}`;
  const before = answerText(baseline);
  const shown =
    before === text
      ? `<h4>Both answered ${facts(candidate)}</h4><p class="answer">${escapeHtml(clip(text, mostCharacters))}</p>`
      : `<h4>Baseline to candidate ${facts(candidate)}</h4><p class="answer">${diffHtml(before, text, mostCharacters)}</p>`;
  return shown + scores(candidate, baseline);
}

function facts({ answer }: ScoredAnswer): string {
  const { completionTokens } = answer.usage;
  const parts = [
    formatDuration(answer.timing.durationMs),
    ...(completionTokens === undefined ? [] : [`${significant(completionTokens, 0)} tokens`]),
    ...(answer.finishReason === undefined ? [] : [answer.finishReason]),
  ];
  return `<small>${escapeHtml(parts.join(", "))}</small>`;
}

function scores(candidate: ScoredAnswer, baseline?: ScoredAnswer): string {
  const names = Object.keys(candidate.scores);
  if (names.length === 0) return "";
  const items = names.map((name) => {
    const before = baseline?.scores[name];
    const after = candidate.scores[name];
    const moved = before === undefined ? "" : `${scoreText(before)} \u2192 `;
    const reason = after !== undefined && "reason" in after ? after.reason : undefined;
    return `<li><b>${escapeHtml(name)}</b> ${escapeHtml(moved)}<span class="${scoreClass(after)}">${escapeHtml(scoreText(after))}</span>${reason === undefined ? "" : ` <small>${escapeHtml(clip(reason, 600))}</small>`}</li>`;
  });
  return `<ul class="scores">${items.join("")}</ul>`;
}

function scoreText(score: Score | undefined): string {
  if (score === undefined) return "\u2013";
  if (score.status === "skipped") return "skipped";
  if (score.status === "failed") return `could not tell (${score.code})`;
  return `${score.label ?? formatValue(score.value, "score")} ${score.passed ? "\u2713" : "\u2715"}`;
}

function scoreClass(score: Score | undefined): string {
  if (score?.status !== "scored") return "";
  return score.passed ? "good" : "bad";
}
