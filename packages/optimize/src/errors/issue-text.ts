import type { FeedEntry } from "./feed-state.js";
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
    "",
  ];
  return lines.join("\n");
}

/** A fence that the text cannot close. */
function fenced(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
