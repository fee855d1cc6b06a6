/** Of gauges that say how a target is; the others are sums over processes, as counters and histograms are. */
const worst: ReadonlyMap<string, (one: number, other: number) => number> = new Map([
  ["octavo_gateway_target_healthy", Math.min],
  ["octavo_gateway_target_breaker", Math.max],
]);

interface Family {
  /** HELP and TYPE as the first text has them. */
  head: string;
  isGauge: boolean;
  readonly samples: Map<string, number>;
}

/**
 * Expositions of the same families (Prometheus' text format, without timestamps), summed by series. Of `ended`, what processes
 * that are gone said last, counters and histograms count on: a sum that fell would look like a restart of all.
 */
export function mergeMetrics(running: readonly string[], ended: readonly string[] = []): string {
  const families = new Map<string, Family>();
  for (const text of running) addText(families, text, false);
  for (const text of ended) addText(families, text, true);
  let merged = "";
  for (const { head, samples } of families.values()) {
    merged += head;
    for (const [series, value] of samples) merged += `${series} ${value}\n`;
  }
  return merged;
}

function addText(families: Map<string, Family>, text: string, isEnded: boolean): void {
  let family: Family | undefined;
  let name = "";
  for (const line of text.split("\n")) {
    const [, kind, of = "", rest = ""] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (kind !== undefined) {
      if (of !== name || family === undefined) {
        name = of;
        family = families.get(of) ?? { head: "", isGauge: false, samples: new Map() };
        families.set(of, family);
      }
      if (kind === "TYPE") family.isGauge = rest === "gauge";
      if (!family.head.includes(`# ${kind} `)) family.head += `${line}\n`;
      continue;
    }
    const end = line.lastIndexOf(" ");
    if (family === undefined || end < 0 || (isEnded && family.isGauge)) continue;
    const series = line.slice(0, end);
    const value = Number(line.slice(end + 1));
    const before = family.samples.get(series);
    const add = worst.get(name) ?? ((one: number, other: number) => one + other);
    family.samples.set(series, before === undefined ? value : add(before, value));
  }
}
