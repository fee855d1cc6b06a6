import { OctavoError } from "@octavo/protocol/errors";
import { given, inGroup, option, type ResolvedOptions } from "@octavo/protocol/options";
import { defaultStoreFolder, SpanQuery, usageGroups } from "@octavo/tracing/store";
import { defineCommand } from "../command.js";
import { type CostReport, costReport, machinesOf } from "../costs/cost-report.js";
import { namedPrices, readPriceTable } from "../costs/price-table.js";
import { readMeteringLogs } from "../costs/read-metering-log.js";
import { readVerdicts } from "../costs/read-verdicts.js";
import { renderCosts } from "../costs/render-costs.js";
import type { RecordedUsage, UsageFilter } from "../costs/usage.js";
import { past } from "../options/times.js";

const rows = {
  log: option.texts("--log <file...>", "metering logs, as octavo serve --metering-log writes them"),
  store: option.text("--store <folder>", "without a log: where octavo serve --trace-store kept spans", {
    default: defaultStoreFolder(),
    defaultText: "that of octavo serve --trace-store auto",
  }),
  by: option.choice(usageGroups, "--by <field>", "group by", { default: "feature" as const }),
  rate: option.number("--rate <dollars>", "what a machine costs per hour", {
    min: 0,
    defaultText: "as recorded",
  }),
  replicas: option.integer("--replicas <n>", "with a store: machines that it has spans of", {
    min: 1,
    max: 100_000,
    default: 1,
  }),
  ...inGroup("Requests", {
    sinceMs: option.of(past, "--since <time>", "requests after: a date, or a time span such as 24h"),
    untilMs: option.of(past, "--until <time>", "requests before"),
    model: option.text("--model <name>", "of one model"),
    tenant: option.text("--tenant <name>", "of one tenant"),
    feature: option.text("--feature <name>", "of one feature"),
  }),
  evaluations: option.text("--evaluations <file>", "which traces were good, one JSON object a line", {
    defaultText: "those that ended well",
  }),
  passScore: option.number("--pass-score <score>", "lowest score of an evaluation that passes", {
    default: 0.5,
  }),
  prices: option.text("--prices <file>", "prices of managed APIs", {
    defaultText: "those that came with Octavo",
  }),
  compare: option.texts("--compare <name...>", "which of them to compare with", { defaultText: "all" }),
  json: option.toggle("--json", "print the report as JSON"),
};

type CostFlags = ResolvedOptions<typeof rows>;

/** `octavo costs`: what requests cost, by feature, tenant or model, and what the same tokens would cost elsewhere. */
export const costsCommand = defineCommand({
  options: rows,
  async run(flags) {
    const table = await readPriceTable(flags.prices);
    const prices = namedPrices(table, flags.compare);
    const verdicts =
      flags.evaluations === undefined ? new Map() : await readVerdicts(flags.evaluations, flags.passScore);
    const { sinceMs, untilMs, model, tenant, feature } = flags;
    const filter = given({ sinceMs, untilMs, model, tenant, feature });
    const usage =
      flags.log === undefined
        ? await usageOfStore(flags, filter, verdicts)
        : await readMeteringLogs(flags.log, filter, flags.by, verdicts);
    const report = costReport(usage, {
      by: flags.by,
      dollarsPerHour: flags.rate,
      prices,
      pricesAsOf: table.asOf,
    });
    process.stdout.write(flags.json ? `${JSON.stringify(wireReport(report))}\n` : renderCosts(report));
  },
});

/** A store records no idle time: it is the machines' time less what was computed. */
async function usageOfStore(
  flags: CostFlags,
  filter: UsageFilter,
  verdicts: ReadonlyMap<string, boolean>,
): Promise<RecordedUsage> {
  using query = await SpanQuery.open(flags.store);
  const { groups, span: covered } = await query.usage(filter, flags.by, verdicts);
  const { sinceMs, untilMs } = filter;
  const everyone = await query.usage(given({ sinceMs, untilMs }), "model");
  const whole = everyone.span ?? covered;
  const span = whole && {
    fromMs: sinceMs ?? whole.fromMs,
    toMs: untilMs ?? (sinceMs === undefined ? whole.toMs : Date.now()),
  };
  if (span !== undefined && span.toMs < span.fromMs)
    throw new OctavoError("invalid_option", "since: the time begins after its end", { param: "since" });
  const computing = everyone.groups.reduce((sum, { computeSeconds }) => sum + computeSeconds, 0);
  return {
    span,
    groups: groups.map(({ computeSeconds, ...use }) => ({ ...use, gpuSeconds: computeSeconds })),
    machine: span && machinesOf(span, flags.replicas, computing),
    unreadable: 0,
  };
}

/** Names as on the wire. */
function wireReport(report: CostReport): unknown {
  const snake = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(snake);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, entry]) => [
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        snake(entry),
      ]),
    );
  };
  return snake(report);
}
