import { type TextColumn, textTable } from "@octavo/report/text-table";
import type { CostPart, CostReport, GroupCost } from "./cost-report.js";

const partNames: Readonly<Record<CostPart["part"], string>> = {
  requests: "these requests",
  other_requests: "other requests",
  overhead: "overhead between steps",
  idle: "idle",
  idle_and_overhead: "idle and overhead",
};

/** The report as text: where machine time went, the cost of each group, and what managed APIs would have charged. */
export function renderCosts(report: CostReport): string {
  if (report.total.requests === 0 && report.machines === null) return "no requests\n";
  const lines = [headLine(report), "", textTable(report.parts, partColumns(report))];
  lines.push("", textTable([...report.groups, { ...report.total, group: "all" }], groupColumns(report)));
  const [first] = report.total.apis;
  if (first !== undefined)
    lines.push(
      "",
      `The same tokens at managed APIs, with prices as of ${report.pricesAsOf} (check them):`,
      textTable(report.total.apis, [
        { head: "api", of: ({ name }) => name },
        { head: "$", of: ({ dollars }) => money(dollars) },
        {
          head: "× ours",
          of: ({ dollars }) =>
            report.total.fullDollars === null || report.total.fullDollars === 0
              ? null
              : (dollars / report.total.fullDollars).toFixed(2),
        },
      ]),
    );
  if (report.unreadable > 0)
    lines.push(
      "",
      `Warning: ${report.unreadable} lines are not records, or torn ones; whatever they recorded is missing here.`,
    );
  if (report.dollarsPerHour === null)
    lines.push("", "Costs in dollars need --rate, the price of a machine per hour.");
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

function headLine({ from, to, machines, dollarsPerHour }: CostReport): string {
  const when = from === null || to === null ? "" : `${shortTime(from)} to ${shortTime(to)}`;
  const what = machines === null ? [] : [`${(machines.seconds / 3600).toFixed(2)} machine hours`];
  const rate = dollarsPerHour === null ? [] : [`$${round(dollarsPerHour)} an hour`];
  const price = typeof machines?.dollars === "number" ? [`$${money(machines.dollars)}`] : [];
  return [when, ...what, ...rate, ...price].filter((part) => part !== "").join(", ");
}

function partColumns({ machines }: CostReport): readonly TextColumn<CostPart>[] {
  const whole = machines?.seconds ?? 0;
  return [
    { head: "time spent on", of: ({ part }) => partNames[part] },
    { head: "seconds", of: ({ seconds }) => seconds.toFixed(1) },
    {
      head: "share",
      of: ({ seconds }) => (whole === 0 ? null : `${((100 * seconds) / whole).toFixed(1)} %`),
    },
    { head: "$", of: ({ dollars }) => money(dollars) },
  ];
}

function groupColumns({ by }: CostReport): readonly TextColumn<GroupCost>[] {
  return [
    { head: by, of: ({ group }) => group },
    { head: "requests", of: ({ requests }) => requests },
    { head: "gpu s", of: ({ gpuSeconds }) => gpuSeconds },
    { head: "tokens in", of: ({ inputTokens }) => inputTokens },
    { head: "cached", of: ({ cachedTokens }) => cachedTokens },
    { head: "out", of: ({ outputTokens }) => outputTokens },
    { head: "$ compute", of: ({ dollars }) => money(dollars) },
    { head: "$ full", of: ({ fullDollars }) => money(fullDollars) },
    { head: "traces", of: ({ traces }) => traces },
    { head: "good", of: ({ successfulTraces }) => successfulTraces },
    { head: "$ per good", of: ({ dollarsPerSuccessfulTrace }) => money(dollarsPerSuccessfulTrace) },
  ];
}

/** Three significant digits below a dollar, cents above. */
function money(dollars: number | null): string | null {
  if (dollars === null) return null;
  if (dollars === 0) return "0";
  return Math.abs(dollars) >= 1
    ? dollars.toFixed(2)
    : Number(dollars.toPrecision(3)).toFixed(decimals(dollars));
}

function decimals(dollars: number): number {
  return Math.min(12, 2 - Math.floor(Math.log10(Math.abs(dollars))));
}

function round(dollars: number): string {
  return String(Number(dollars.toFixed(4)));
}

function shortTime(iso: string): string {
  return iso.slice(0, 16).replace("T", " ");
}
