import { existsSync } from "node:fs";
import { readSpanValues, wantedCalls } from "@octavo/evals";
import {
  clusterFindings,
  emptyFeed,
  entryNamed,
  type FeedState,
  feedStatuses,
  type CallFinding,
  findingsOfSpan,
  issueText,
  markEntry,
  parseFeedState,
  proposeFix,
  renderPatch,
  type ServePatch,
  type ServeSettings,
  updateFeed,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defaultStoreFolder } from "@octavo/tracing/store";
import { defineCommand, readAgain } from "../command.js";
import { flagNames } from "../options/flag-names.js";
import { serveRows, serveSources } from "../options/serve-options.js";
import { readTextOf, writeTextOf } from "../output/files.js";
import { printable, textTable } from "../output/text-table.js";

/** Options of `octavo serve` by the names of their flags, without dashes. */
const serveFlags = new Map(
  Object.entries(serveRows).flatMap(([key, row]) =>
    flagNames(row).map((name) => [name.slice(2), key] as const),
  ),
);

const stateRows = {
  state: option.text("--state <file>", "what the feed remembers: statuses, first and last times", {
    default: "octavo-errors.json",
  }),
  config: option.text("--config <file>", "octavo serve's file of flags, which fixes are changes of", {
    defaultText: "its defaults",
  }),
};

/** `octavo errors list`: findings of recorded calls as clusters, each with the change to try first. */
export const errorsListCommand = defineCommand({
  options: {
    spans: option.texts("--spans <file...>", "files or folders of spans", {
      defaultText: "the store of octavo serve --trace-store auto",
    }),
    ...stateRows,
    firstTokenMs: option.number("--slow-first-token <ms>", "a first token this late is a finding", {
      min: 1,
      default: 1000,
    }),
    gapMs: option.number("--slow-gap <ms>", "a gap between tokens this long is a finding", {
      min: 1,
      default: 500,
    }),
    score: option.number("--pass-score <score>", "scores below are findings", {
      min: 0,
      max: 1,
      default: 0.5,
    }),
    json: option.toggle("--json", "print the feed as JSON"),
  },
  async run({ spans, state: path, config, firstTokenMs, gapMs, score, json }) {
    const settings = await settingsOf(config);
    const { findings, calls, unverified } = await readFindings(spans ?? [defaultStoreFolder()], {
      firstTokenMs,
      gapMs,
      score,
    });
    const state = updateFeed(await readState(path), await clusterFindings(findings), Date.now());
    await writeTextOf("state", path, `${JSON.stringify(state, undefined, 2)}\n`);
    const entries = state.entries.map((entry) => ({ ...entry, fix: fixOf(entry.cause, settings) ?? null }));
    if (json) {
      process.stdout.write(
        `${JSON.stringify({ calls, findings: findings.length, unverified, entries }, undefined, 2)}\n`,
      );
      return;
    }
    const found = `${findings.length} findings in ${calls} calls, ${entries.length} clusters`;
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
        { head: "findings", of: ({ count }) => count },
        { head: "last seen", of: ({ last_seen: last }) => new Date(last).toISOString().slice(0, 19) },
        {
          head: "fix to try",
          of: ({ fix }) => (fix === null ? "" : renderPatch(fix).trim().replaceAll("\n", ", ")),
        },
      ])}`,
    );
  },
});

/** `octavo errors mark ID STATUS`. */
export const errorsMarkCommand = defineCommand({
  arguments: { "<id>": "of a cluster, or how it begins", "<status>": "acknowledged, fixed or new" },
  options: { state: stateRows.state },
  async run({ state: path }, id = "", wanted = "") {
    const status = feedStatuses.find((known) => known === wanted);
    if (status === undefined)
      throw new OctavoError("invalid_option", `status is one of ${feedStatuses.join(", ")}, not ${wanted}`, {
        param: "status",
      });
    const state = markEntry(await readState(path), id, status, Date.now());
    await writeTextOf("state", path, `${JSON.stringify(state, undefined, 2)}\n`);
  },
});

/** `octavo errors issue ID`: the text of an issue, as Markdown. */
export const errorsIssueCommand = defineCommand({
  arguments: { "<id>": "of a cluster, or how it begins" },
  options: stateRows,
  async run({ state: path, config }, id = "") {
    const entry = entryNamed(await readState(path), id);
    process.stdout.write(issueText(entry, fixOf(entry.cause, await settingsOf(config))));
  },
});

async function readFindings(
  paths: readonly string[],
  limits: Parameters<typeof findingsOfSpan>[1],
): Promise<{
  readonly findings: readonly CallFinding[];
  readonly calls: number;
  readonly unverified: number;
}> {
  const findings: CallFinding[] = [];
  let calls = 0;
  let unverified = 0;
  for (const path of paths)
    for await (const value of readSpanValues(path))
      for (const span of wantedCalls(value, {})) {
        const found = findingsOfSpan(span, limits);
        calls += 1;
        unverified += found.unverified;
        findings.push(...found.findings);
      }
  return { findings, calls, unverified };
}

async function readState(path: string): Promise<FeedState> {
  return existsSync(path) ? parseFeedState(path, await readTextOf("state", path)) : emptyFeed;
}

/** By the names of their flags, with values as `octavo serve` reads them from the file: sizes in bytes, for instance. */
async function settingsOf(path: string | undefined): Promise<ServeSettings> {
  if (path === undefined) return {};
  const values: Readonly<Record<string, unknown>> = await readAgain(
    { options: serveRows, sources: serveSources, run: () => Promise.resolve() },
    ["--config", path],
  );
  return Object.fromEntries([...serveFlags].map(([name, key]) => [name, values[key]]));
}

/** Throws `internal_error` for a fix that sets what `octavo serve` does not have: it would be refused when it is tried. */
function fixOf(cause: string, settings: ServeSettings): ServePatch | undefined {
  const fix = proposeFix({ cause }, settings);
  const unknown = Object.keys(fix?.set ?? {}).find((name) => !serveFlags.has(name));
  if (unknown === undefined) return fix;
  throw new OctavoError(
    "internal_error",
    `the fix of ${cause} sets ${unknown}, which octavo serve does not have`,
  );
}
