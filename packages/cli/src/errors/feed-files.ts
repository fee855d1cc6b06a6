import { existsSync } from "node:fs";
import { emptyFeed, type FeedState, parseFeedState, type ServeSettings } from "@octavo/optimize";
import { option } from "@octavo/protocol/options";
import { readAgain } from "../command.js";
import { flagNames } from "../options/flag-names.js";
import { serveRows, serveSources } from "../options/serve-options.js";
import { readTextOf, writeTextOf } from "../output/files.js";

/** Options of `octavo serve` by the names of their flags, without dashes. */
export const serveFlags = new Map(
  Object.entries(serveRows).flatMap(([key, row]) =>
    flagNames(row).map((name) => [name.slice(2), key] as const),
  ),
);

export const stateRows = {
  state: option.text("--state <file>", "what the feed remembers: statuses, first and last times", {
    default: "octavo-errors.json",
  }),
};

export const findingRows = {
  spans: option.texts("--spans <file...>", "files or folders of spans", {
    defaultText: "the store of octavo serve --trace-store auto",
  }),
  gatewayLog: option.texts("--gateway-log <file...>", "access logs of the gateway"),
  alerts: option.texts("--alerts <file...>", "alerts as webhooks receive them, or logs of servers"),
  firstTokenMs: option.number("--slow-first-token <ms>", "a first token this late is a finding", {
    min: 1,
    default: 1000,
  }),
  gapMs: option.number("--slow-gap <ms>", "a gap between tokens this long is a finding", {
    min: 1,
    default: 500,
  }),
  score: option.number("--pass-score <score>", "scores below are findings", { min: 0, max: 1, default: 0.5 }),
};

export async function readState(path: string): Promise<FeedState> {
  return existsSync(path) ? parseFeedState(path, await readTextOf("state", path)) : emptyFeed;
}

export async function writeState(path: string, state: FeedState): Promise<void> {
  await writeTextOf("state", path, `${JSON.stringify(state, undefined, 2)}\n`);
}

/** By the names of their flags, with values as `octavo serve` reads them from the file: sizes in bytes, for instance. */
export async function settingsOf(path: string | undefined): Promise<ServeSettings> {
  return path === undefined ? {} : settingsOfArgs(["--config", path]);
}

/** Of a command line of `octavo serve`. Throws `invalid_option` where it would refuse it. */
export async function settingsOfArgs(args: readonly string[]): Promise<ServeSettings> {
  const values: Readonly<Record<string, unknown>> = await readAgain(
    { options: serveRows, sources: serveSources, run: () => Promise.resolve() },
    args,
  );
  return Object.fromEntries([...serveFlags].map(([name, key]) => [name, values[key]]));
}
