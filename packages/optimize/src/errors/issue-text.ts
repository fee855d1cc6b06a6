import type { FeedEntry } from "./feed-state.js";
import type { FixProof } from "../replay/fix-proof.js";
import { renderPatch, type ServePatch } from "./propose-fix.js";

/** Text for an issue tracker: what was found, the evidence word for word, and the change to try first. */
export function issueText(entry: FeedEntry, patch: ServePatch | undefined): string {
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
    ...(lost > 0 ? [`- ${Math.round(lost)} ms were waited for in all`] : []),
    ...(tenants.length > 0 ? [`- tenants: ${tenants.join(", ")}`] : []),
    ...(replicas.length > 0 ? [`- replicas: ${replicas.join(", ")}`] : []),
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
      ? ["No setting of the server answers this cause."]
      : [
          `${patch.why}; in the file of \`octavo serve --config\`:`,
          "",
          fenced(renderPatch(patch).trimEnd(), "yaml"),
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
  const seconds = (side: "before" | "after"): string =>
    (cost[side].compute_seconds ?? cost[side].seconds).toFixed(2);
  return [
    `${verdict}: ${reason}.`,
    "",
    `\`${JSON.stringify(patch)}\`, ${pairs} pairs of replays of ${requests} requests (${withPrompts} with their own prompts), ${on}:`,
    "",
    ...measured,
    `- ${cost.before.compute_seconds === undefined ? "time" : "compute"} of one replay: ${seconds("before")} s -> ${seconds("after")} s`,
  ];
}

/** A fence that the text cannot close. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
