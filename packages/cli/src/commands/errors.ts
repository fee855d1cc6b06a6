import {
  clusterFindings,
  entryNamed,
  type FeedEntry,
  feedStatuses,
  issueText,
  markEntry,
  renderPatch,
  type ConfigPatch,
  type Recall,
  updateFeed,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { FeedCache } from "../errors/feed-cache.js";
import { findingRows, readState, stateRows, writeState } from "../errors/feed-files.js";
import { judgeRows } from "../eval/eval-rows.js";
import { announceChanges, webhookRows } from "../errors/feed-webhook.js";
import { embeddingRows, embedOf, withJudgedCauses } from "../errors/feed-models.js";
import { fileRows, fixOf, readPatchable } from "../errors/patched-files.js";
import { readFindings } from "../errors/read-findings.js";
import { printable, textTable } from "@octavo/report/text-table";

/** `octavo errors list`: findings of recorded calls as clusters, each with the change to try first. */
export const errorsListCommand = defineCommand({
  options: {
    ...findingRows,
    ...stateRows,
    ...fileRows,
    ...webhookRows,
    ...judgeRows,
    ...embeddingRows,
    json: option.toggle("--json", "print the feed as JSON"),
  },
  async run(options) {
    const { state: path, json } = options;
    const files = await readPatchable(options);
    const cache = new FeedCache(`${path}.cache`);
    const { findings, calls, unverified } = await readFindings(options, cache);
    const before = await readState(path);
    const embed = embedOf(options);
    const recall: Recall = (content, make) => cache.recall(content, make);
    // a server's model may be another one under the same name: its clusters are made each time
    const clusters = await clusterFindings(findings, embed === undefined ? { recall } : { embed });
    await cache.prune();
    if (cache.numBroken > 0)
      process.stderr.write(
        `${cache.numBroken} files in ${path}.cache could not be used; what they held was made again\n`,
      );
    const found = updateFeed(before, clusters, Date.now());
    const state = await withJudgedCauses(found, options);
    await writeState(path, state);
    const entries = state.entries.map((entry) => ({ ...entry, fix: fixOf(entry, files) ?? null }));
    if (json)
      process.stdout.write(
        `${JSON.stringify({ calls, findings: findings.length, unverified, entries }, undefined, 2)}\n`,
      );
    else printFeed({ entries, calls, findings: findings.length, unverified });
    await announceChanges(options, before, state);
  },
});

interface ListedFeed {
  readonly entries: readonly (FeedEntry & { readonly fix: ConfigPatch | null })[];
  readonly calls: number;
  readonly findings: number;
  readonly unverified: number;
}

function printFeed({ entries, calls, findings, unverified }: ListedFeed): void {
  const found = `${findings} findings in ${calls} calls, ${entries.length} clusters`;
  process.stdout.write(
    `${found}${unverified > 0 ? `; ${unverified} findings without evidence in their trace were dropped` : ""}\n`,
  );
  if (entries.length === 0) return;
  process.stdout.write(
    `\n${textTable(entries, [
      { head: "id", of: ({ id }) => id.slice(0, 8) },
      { head: "status", of: ({ status }) => status },
      { head: "kind", of: ({ kind }) => kind },
      { head: "cause", of: ({ cause }) => printable(cause) },
      { head: "judged", of: ({ judged }) => judged?.cause ?? "" },
      { head: "findings", of: ({ count }) => count },
      { head: "worded alike", of: alikeText },
      { head: "last seen", of: ({ last_seen: last }) => new Date(last).toISOString().slice(0, 19) },
      {
        head: "fix to try",
        of: ({ fix }) => (fix === null ? "" : renderPatch(fix).trim().replaceAll("\n", ", ")),
      },
    ])}`,
  );
}

/** Without labels nobody knows whether a cluster has one cause; how its findings are worded can be told. */
function alikeText({ wordings, commonest_share: share, spread }: FeedEntry): string {
  if (wordings === undefined || share === undefined || spread === undefined) return "";
  return wordings === 1
    ? "100 %"
    : `${Math.floor(100 * share)} %, ${wordings} wordings, spread ${spread.toFixed(2)}`;
}

/** `octavo errors mark ID STATUS`. */
export const errorsMarkCommand = defineCommand({
  arguments: { "<id>": "of a cluster, or how it begins", "<status>": "acknowledged, fixed or new" },
  options: { state: stateRows.state, ...webhookRows },
  async run({ state: path, ...webhook }, id = "", wanted = "") {
    const status = feedStatuses.find((known) => known === wanted);
    if (status === undefined)
      throw new OctavoError("invalid_option", `status is one of ${feedStatuses.join(", ")}, not ${wanted}`, {
        param: "status",
      });
    const before = await readState(path);
    const state = markEntry(before, id, status, Date.now());
    await writeState(path, state);
    await announceChanges(webhook, before, state);
  },
});

/** `octavo errors issue ID`: the text of an issue, as Markdown. */
export const errorsIssueCommand = defineCommand({
  arguments: { "<id>": "of a cluster, or how it begins" },
  options: { ...stateRows, ...fileRows },
  async run(options, id = "") {
    const entry = entryNamed(await readState(options.state), id);
    process.stdout.write(issueText(entry, fixOf(entry, await readPatchable(options))));
  },
});
