import { OctavoError } from "@octavo/protocol/errors";
import { inGroup, option, type ResolvedOptions } from "@octavo/protocol/options";
import { defaultStoreFolder, SpanQuery, usageGroups } from "@octavo/tracing/store";
import { defineCommand } from "../command.js";
import { type CostReport, costReport, machinesOf } from "../costs/cost-report.js";
import { namedPrices, readPriceTable } from "../costs/price-table.js";
import { readMeteringLogs } from "../costs/read-metering-log.js";
import { readVerdicts } from "../costs/read-verdicts.js";
import { renderCosts } from "../costs/render-costs.js";
import type { RecordedUsage, UsageFilter } from "../costs/usage.js";
import { given } from "../options/given.js";
import { past } from "../options/times.js";

const rows = {
  log: {
    flag: "log",
    type: option.list(option.text("file")),
    help: "metering logs, as octavo serve --metering-log writes them",
  },
  store: {
    flag: "store",
    type: option.text("folder"),
    default: defaultStoreFolder(),
    defaultText: "that of octavo serve --trace-store auto",
    help: "without a log: where octavo serve --trace-store kept spans",
  },
  by: {
    flag: "by",
    type: option.choice(usageGroups, "field"),
    default: "feature" as const,
    help: "group by",
  },
  rate: {
    flag: "rate",
    type: option.number({ min: 0 }, "dollars"),
    defaultText: "as recorded",
    help: "what a machine costs per hour",
  },
  replicas: {
    flag: "replicas",
    type: option.integer({ min: 1, max: 100_000 }),
    default: 1,
    help: "with a store: machines that it has spans of",
  },
  ...inGroup("Requests", {
    sinceMs: { flag: "since", type: past, help: "requests after: a date, or a time span such as 24h" },
    untilMs: { flag: "until", type: past, help: "requests before" },
    model: { flag: "model", type: option.text("name"), help: "of one model" },
    tenant: { flag: "tenant", type: option.text("name"), help: "of one tenant" },
    feature: { flag: "feature", type: option.text("name"), help: "of one feature" },
  }),
  evaluations: {
    flag: "evaluations",
    type: option.text("file"),
    defaultText: "those that ended well",
    help: "which traces were good, one JSON object a line",
  },
  passScore: {
    flag: "pass-score",
    type: option.number({}, "score"),
    default: 0.5,
    help: "lowest score of an evaluation that passes",
  },
  prices: {
    flag: "prices",
    type: option.text("file"),
    defaultText: "those that came with Octavo",
    help: "prices of managed APIs",
  },
  compare: {
    flag: "compare",
    type: option.list(option.text("name")),
    defaultText: "all",
    help: "which of them to compare with",
  },
  json: { flag: "json", type: option.toggle(), default: false, help: "print the report as JSON" },
};

type CostFlags = ResolvedOptions<typeof rows>;

/** `octavo costs`: what requests cost, by feature, tenant or model, and what the same tokens would cost elsewhere. */
export const costs = defineCommand({
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
