import { type ApiPrice, OctavoError } from "@octavo/protocol";
import type { UsageGroup } from "@octavo/tracing/store";
import { apiDollars } from "./price-table.js";
import type { GroupUse, RecordedUsage } from "./usage.js";

/** A piece of the machines' time and price. */
export interface CostPart {
  readonly part: "requests" | "other_requests" | "overhead" | "idle" | "idle_and_overhead";
  readonly seconds: number;
  readonly dollars: number | null;
}

export interface GroupCost extends GroupUse {
  /** Of its own computing time. */
  readonly dollars: number | null;
  /** With its share, by computing time, of all that the machines cost. */
  readonly fullDollars: number | null;
  /** Full cost over successful traces; null where there are none. */
  readonly dollarsPerSuccessfulTrace: number | null;
  readonly apis: readonly { readonly name: string; readonly dollars: number }[];
}

export interface CostReport {
  readonly by: UsageGroup;
  readonly from: string | null;
  readonly to: string | null;
  readonly dollarsPerHour: number | null;
  readonly machines: { readonly seconds: number; readonly dollars: number | null } | null;
  /** They add up to the machines'. */
  readonly parts: readonly CostPart[];
  readonly groups: readonly GroupCost[];
  readonly total: GroupCost;
  readonly pricesAsOf: string;
  readonly unreadable: number;
}

export interface CostOptions {
  readonly by: UsageGroup;
  /** Instead of the recorded rates. */
  readonly dollarsPerHour: number | undefined;
  readonly prices: readonly ApiPrice[];
  readonly pricesAsOf: string;
}

/** Makes a report of what was used. The requests' parts, overhead and idle time add up to what the machines cost. */
export function costReport(usage: RecordedUsage, options: CostOptions): CostReport {
  const { machine, span } = usage;
  const recorded =
    machine?.dollars === undefined || machine.seconds === 0
      ? undefined
      : (machine.dollars / machine.seconds) * 3600;
  const dollarsPerHour = options.dollarsPerHour ?? recorded ?? null;
  const dollarsOf = (seconds: number): number | null =>
    dollarsPerHour === null ? null : (seconds * dollarsPerHour) / 3600;
  const all = totalOf(usage.groups);
  const computing = Math.max(machine?.computingSeconds ?? 0, all.gpuSeconds);
  const spread = machine === undefined || computing === 0 ? 1 : machine.seconds / computing;
  const costOf = (use: GroupUse): GroupCost => {
    const fullDollars = dollarsOf(use.gpuSeconds * spread);
    return {
      ...use,
      dollars: dollarsOf(use.gpuSeconds),
      fullDollars,
      dollarsPerSuccessfulTrace:
        fullDollars === null || use.successfulTraces === 0 ? null : fullDollars / use.successfulTraces,
      apis: options.prices.map((price) => ({ name: price.name, dollars: apiDollars(price, use) })),
    };
  };
  return {
    by: options.by,
    from: span === undefined ? null : new Date(span.fromMs).toISOString(),
    to: span === undefined ? null : new Date(span.toMs).toISOString(),
    dollarsPerHour,
    machines:
      machine === undefined ? null : { seconds: machine.seconds, dollars: dollarsOf(machine.seconds) },
    parts: partsOf(usage, all.gpuSeconds).map((part) => ({ ...part, dollars: dollarsOf(part.seconds) })),
    groups: usage.groups.map(costOf),
    total: costOf(all),
    pricesAsOf: options.pricesAsOf,
    unreadable: usage.unreadable,
  };
}

/** Machines of which only the time and the computing are known. */
export function machinesOf(
  span: NonNullable<RecordedUsage["span"]>,
  replicas: number,
  gpuSeconds: number,
): RecordedUsage["machine"] {
  const seconds = ((span.toMs - span.fromMs) / 1000) * replicas;
  if (gpuSeconds > seconds * 1.001) {
    const message = `replicas: the requests took ${gpuSeconds.toFixed(1)} s, more than the ${seconds.toFixed(1)} s that ${replicas} machine${replicas === 1 ? " has" : "s have"} in this time; say how many there were`;
    throw new OctavoError("invalid_option", message, { param: "replicas" });
  }
  return {
    seconds,
    computingSeconds: gpuSeconds,
    overheadSeconds: 0,
    idleSeconds: seconds - gpuSeconds,
    dollars: undefined,
  };
}

/** What was computed for nobody among the requests was for others, or for those in progress when the time began or ended. */
function partsOf({ machine }: RecordedUsage, gpuSeconds: number): readonly Omit<CostPart, "dollars">[] {
  if (machine === undefined) return [{ part: "requests", seconds: gpuSeconds }];
  const { computingSeconds, overheadSeconds, idleSeconds } = machine;
  const idle: readonly Omit<CostPart, "dollars">[] =
    overheadSeconds === 0
      ? [{ part: "idle_and_overhead", seconds: idleSeconds }]
      : [
          { part: "overhead", seconds: overheadSeconds },
          { part: "idle", seconds: idleSeconds },
        ];
  return [
    { part: "requests", seconds: gpuSeconds },
    { part: "other_requests", seconds: computingSeconds - gpuSeconds },
    ...idle,
  ];
}

function totalOf(groups: readonly GroupUse[]): GroupUse {
  const sum = (of: (use: GroupUse) => number): number => groups.reduce((total, use) => total + of(use), 0);
  return {
    group: null,
    requests: sum(({ requests }) => requests),
    gpuSeconds: sum(({ gpuSeconds }) => gpuSeconds),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    cachedTokens: sum(({ cachedTokens }) => cachedTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    traces: sum(({ traces }) => traces),
    successfulTraces: sum(({ successfulTraces }) => successfulTraces),
  };
}
