import { OctavoError } from "@octavo/protocol";
import { defaultStoreFolder, SpanQuery, type UsageGroup, usageGroups } from "@octavo/tracing/store";
import { Command, Option } from "commander";
import { type CostReport, costReport, machinesOf } from "../costs/cost-report.js";
import { namedPrices, readPriceTable } from "../costs/price-table.js";
import { readMeteringLogs } from "../costs/read-metering-log.js";
import { readVerdicts } from "../costs/read-verdicts.js";
import { renderCosts } from "../costs/render-costs.js";
import type { Usage, UsageFilter } from "../costs/usage.js";
import { parseCount, parseNumber } from "../options/parse.js";
import { parsePast } from "../options/parse-time.js";

interface CostFlags {
  readonly log?: readonly string[];
  readonly store: string;
  readonly by: UsageGroup;
  readonly rate?: number;
  readonly replicas: number;
  readonly since?: number;
  readonly until?: number;
  readonly model?: string;
  readonly tenant?: string;
  readonly feature?: string;
  readonly evaluations?: string;
  readonly passScore: number;
  readonly prices?: string;
  readonly compare?: readonly string[];
  readonly json?: boolean;
}

/** `octavo costs`: what requests cost, by feature, tenant or model, and what the same tokens would cost elsewhere. */
export function costsCommand(): Command {
  return new Command("costs")
    .description("what requests cost, from a metering log or a trace store")
    .option("--log <file...>", "metering logs, as octavo serve --metering-log writes them")
    .option(
      "--store <folder>",
      "without a log: where octavo serve --trace-store kept spans",
      defaultStoreFolder(),
    )
    .addOption(new Option("--by <fact>", "told apart by").choices(usageGroups).default("feature"))
    .option("--rate <dollars>", "what a machine costs per hour (default: as recorded)", parseNumber(0))
    .option("--replicas <n>", "with a store: machines whose spans it has", parseCount(1, 100_000), 1)
    .option("--since <time>", "requests after: a date, or a time span such as 24h", (text) => parsePast(text))
    .option("--until <time>", "requests before", (text) => parsePast(text))
    .option("--model <name>", "of one model")
    .option("--tenant <name>", "of one tenant")
    .option("--feature <name>", "of one feature")
    .option(
      "--evaluations <file>",
      "which traces were good, one JSON object a line (default: those that ended well)",
    )
    .option(
      "--pass-score <score>",
      "an evaluation passes from this score on",
      parseNumber(Number.NEGATIVE_INFINITY),
      0.5,
    )
    .option("--prices <file>", "prices of managed APIs (default: those that came with Octavo)")
    .option("--compare <name...>", "which of them (default: all)")
    .option("--json", "print the report as JSON")
    .action(costs);
}

async function costs(flags: CostFlags): Promise<void> {
  const table = await readPriceTable(flags.prices);
  const prices = namedPrices(table, flags.compare);
  const verdicts =
    flags.evaluations === undefined ? new Map() : await readVerdicts(flags.evaluations, flags.passScore);
  const filter = filterOf(flags);
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
  process.stdout.write(flags.json === true ? `${JSON.stringify(wireReport(report))}\n` : renderCosts(report));
}

/** A store knows no idle time: it is what is left of the time that the machines were there. */
async function usageOfStore(
  flags: CostFlags,
  filter: UsageFilter,
  verdicts: ReadonlyMap<string, boolean>,
): Promise<Usage> {
  using query = await SpanQuery.open(flags.store);
  const { groups, span: covered } = await query.usage(filter, flags.by, verdicts);
  const { sinceMs, untilMs } = filter;
  const everyone = await query.usage(
    { ...(sinceMs === undefined ? {} : { sinceMs }), ...(untilMs === undefined ? {} : { untilMs }) },
    "model",
  );
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

function filterOf({ since, until, model, tenant, feature }: CostFlags): UsageFilter {
  return {
    ...(since === undefined ? {} : { sinceMs: since }),
    ...(until === undefined ? {} : { untilMs: until }),
    ...(model === undefined ? {} : { model }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(feature === undefined ? {} : { feature }),
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
