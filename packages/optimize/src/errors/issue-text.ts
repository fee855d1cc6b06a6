import type { FeedEntry } from "./feed-state.js";
import { judgedCauses } from "./judged-causes.js";
import type { FixProof } from "../replay/fix-proof.js";
import { type ConfigPatch, patchedFiles, renderPatch } from "./config-patch.js";

/** Text for an issue tracker: what was found, the evidence word for word, and the change to try first. */
export function issueText(entry: FeedEntry, patch: ConfigPatch | undefined): string {
  const {
    kind,
    cause,
    wording,
    count,
    tenants,
    replicas,
    first_seen: first,
    last_seen: last,
    lost_ms: lost,
  } = entry;
  const lines = [
    `# ${kind}: ${cause} (${count} findings)`,
    "",
    wording,
    "",
    `- first seen ${new Date(first).toISOString()}, last seen ${new Date(last).toISOString()}`,
    ...(entry.wordings === undefined || entry.commonest_share === undefined
      ? []
      : [
          `- ${entry.wordings === 1 ? "all are worded alike" : `${Math.floor(100 * entry.commonest_share)} % are worded alike, of ${entry.wordings} wordings`}`,
        ]),
    ...(lost > 0 ? [`- ${Math.round(lost)} ms were waited for in all`] : []),
    ...(tenants.length > 0 ? [`- tenants: ${tenants.join(", ")}`] : []),
    ...(replicas.length > 0 ? [`- replicas: ${replicas.join(", ")}`] : []),
    ...(entry.judged === undefined || entry.judged.cause === null
      ? []
      : [
          `- judged cause: ${entry.judged.cause} (${judgedCauses[entry.judged.cause]}), for ${entry.judged.votes} of ${entry.judged.traces} traces, by ${entry.judged.judge}`,
        ]),
    "",
    "## Evidence",
    "",
    ...entry.quotes.flatMap(({ field, text, trace }) => [
      `Trace ${trace}, \`${field}\`:`,
      "",
      fenced(text),
      "",
    ]),
    "## Fix to try first",
    "",
    ...(patch === undefined
      ? ["No setting answers this cause."]
      : [
          `${patch.why}; in ${patchedFiles[patch.of]}:`,
          "",
          fenced(renderPatch(patch).trimEnd(), patch.of === "serve" ? "yaml" : ""),
        ]),
    ...(entry.proof === undefined ? [] : ["", "## Replay", "", ...proofLines(entry.proof)]),
    "",
  ];
  return lines.join("\n");
}

/** What replays of the recorded requests said of a patch. */
export function proofLines({
  verdict,
  reason,
  patch,
  target,
  guards,
  cost,
  requests,
  with_prompts: withPrompts,
  pairs,
  on,
}: FixProof): readonly string[] {
  const measured = [...(target === undefined ? [] : [target]), ...guards].map(
    ({ measure, unit, before, after, change, interval }) => {
      const number = (value: number): string =>
        unit === "ms" ? `${value.toFixed(1)} ms` : `${(100 * value).toFixed(1)} %`;
      const points = (value: number): string =>
        `${value > 0 ? "+" : ""}${(100 * value).toFixed(1)} ${unit === "ms" ? "%" : "points"}`;
      const range = interval === undefined ? "" : `, ${points(interval[0])} to ${points(interval[1])}`;
      return `- ${measure}: ${number(before)} -> ${number(after)} (${points(change)}${range})`;
    },
  );
  const costs =
    cost.before.usd !== undefined
      ? (["cost", "usd", "US$"] as const)
      : cost.before.replica_seconds !== undefined
        ? (["replica-seconds", "replica_seconds", "s"] as const)
        : cost.before.compute_seconds !== undefined
          ? (["compute", "compute_seconds", "s"] as const)
          : (["time", "seconds", "s"] as const);
  const [costName, costOf, costUnit] = costs;
  const costly = (side: "before" | "after"): string =>
    `${(cost[side][costOf] ?? 0).toFixed(costUnit === "s" ? 2 : 6)} ${costUnit}`;
  return [
    `${verdict}: ${reason}.`,
    "",
    `\`${JSON.stringify(patch)}\`, ${pairs} pairs of replays of ${requests} requests (${withPrompts} with their own prompts), ${on}:`,
    "",
    ...measured,
    `- ${costName} of one replay: ${costly("before")} -> ${costly("after")}`,
  ];
}

/** A fence that the text cannot close. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
