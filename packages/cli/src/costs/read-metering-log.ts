import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import {
  machineRecord,
  type MachineRecord,
  meteringRecord,
  type MeteringRecord,
  OctavoError,
  systemProblem,
} from "@octavo/protocol";
import type { UsageGroup, Verdicts } from "@octavo/tracing/store";
import { TraceOutcomes } from "./trace-outcomes.js";
import type { GroupUse, MachineUse, RecordedUsage, UsageFilter } from "./usage.js";

type OpenUse = { -readonly [Key in keyof Omit<GroupUse, "traces" | "successfulTraces">]: GroupUse[Key] } & {
  readonly outcomes: TraceOutcomes;
};

/** Further groups are counted together as `(other)`. */
const mostGroups = 10_000;

/** Reads metering logs line by line; lines that are not records are counted and skipped. */
export async function readMeteringLogs(
  paths: readonly string[],
  filter: UsageFilter,
  by: UsageGroup,
  verdicts: Verdicts,
): Promise<RecordedUsage> {
  const reader = new LogReader(filter, by, verdicts);
  for (const path of paths) {
    try {
      for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity }))
        reader.take(line);
    } catch (cause) {
      throw new OctavoError("invalid_option", `log: ${path} cannot be read: ${systemProblem(cause)}`, {
        param: "log",
        cause,
      });
    }
  }
  return reader.usage;
}

class LogReader {
  readonly #filter: UsageFilter;
  readonly #by: UsageGroup;
  readonly #verdicts: Verdicts;
  readonly #groups = new Map<string | null, OpenUse>();
  #machine: { -readonly [Key in keyof MachineUse]: MachineUse[Key] } | undefined;
  #fromMs = Number.POSITIVE_INFINITY;
  #toMs = Number.NEGATIVE_INFINITY;
  #unreadable = 0;

  constructor(filter: UsageFilter, by: UsageGroup, verdicts: Verdicts) {
    this.#filter = filter;
    this.#by = by;
    this.#verdicts = verdicts;
  }

  get usage(): RecordedUsage {
    const groups = [...this.#groups.values()].map(({ outcomes, ...use }) => ({
      ...use,
      ...outcomes.counts(),
    }));
    return {
      span: this.#fromMs <= this.#toMs ? { fromMs: this.#fromMs, toMs: this.#toMs } : undefined,
      groups: groups.toSorted((a, b) => b.gpuSeconds - a.gpuSeconds),
      machine: this.#machine,
      unreadable: this.#unreadable,
    };
  }

  take(line: string): void {
    if (line.trim() === "") return;
    const value = parsed(line);
    const isMachine =
      typeof value === "object" && value !== null && "kind" in value && value.kind === "machine";
    const machine = isMachine ? machineRecord.safeParse(value) : undefined;
    if (machine?.success === true) {
      this.#takeMachine(machine.data);
      return;
    }
    const request = meteringRecord.safeParse(value);
    if (request.success) this.#takeRequest(request.data);
    else this.#unreadable += 1;
  }

  #takeMachine(record: MachineRecord): void {
    const endMs = Date.parse(record.time);
    if (!this.#isWanted(endMs)) return;
    this.#machine ??= {
      seconds: 0,
      computingSeconds: 0,
      overheadSeconds: 0,
      idleSeconds: 0,
      dollars: undefined,
    };
    const sum = this.#machine;
    sum.seconds += record.seconds;
    sum.computingSeconds += record.computing_seconds;
    sum.overheadSeconds += record.overhead_seconds;
    sum.idleSeconds += record.idle_seconds;
    if (record.dollars_per_hour !== undefined)
      sum.dollars = (sum.dollars ?? 0) + (record.dollars_per_hour * record.seconds) / 3600;
    this.#note(endMs - record.seconds * 1000);
    this.#note(endMs);
  }

  #takeRequest(record: MeteringRecord): void {
    const timeMs = record.time === undefined ? undefined : Date.parse(record.time);
    const { model, tenant, feature } = this.#filter;
    if (timeMs === undefined ? this.#hasTimes : !this.#isWanted(timeMs)) return;
    if (model !== undefined && record.model !== model) return;
    if (tenant !== undefined && record.tenant !== tenant) return;
    if (feature !== undefined && record.feature !== feature) return;
    if (timeMs !== undefined) this.#note(timeMs);
    const use = this.#group(record[this.#by] ?? null);
    use.requests += 1;
    use.gpuSeconds += record.gpu_seconds;
    use.inputTokens += record.input_tokens;
    use.cachedTokens += record.cached_input_tokens ?? 0;
    use.outputTokens += record.output_tokens;
    const { trace_id: traceId, request_id: requestId } = record;
    const verdict = [traceId, requestId]
      .map((id) => (typeof id === "string" ? this.#verdicts.get(id) : undefined))
      .filter((known) => known !== undefined);
    use.outcomes.add(traceId ?? undefined, timeMs ?? 0, {
      isOk: (record.outcome ?? "ok") === "ok",
      verdict: verdict.length === 0 ? undefined : verdict.every((passed) => passed),
    });
  }

  get #hasTimes(): boolean {
    return this.#filter.sinceMs !== undefined || this.#filter.untilMs !== undefined;
  }

  #isWanted(timeMs: number): boolean {
    const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY } = this.#filter;
    return timeMs >= sinceMs && timeMs < untilMs;
  }

  #note(timeMs: number): void {
    this.#fromMs = Math.min(this.#fromMs, timeMs);
    this.#toMs = Math.max(this.#toMs, timeMs);
  }

  #group(name: string | null): OpenUse {
    const group = this.#groups.has(name) || this.#groups.size < mostGroups ? name : "(other)";
    let use = this.#groups.get(group);
    if (use === undefined) {
      use = {
        group,
        requests: 0,
        gpuSeconds: 0,
        inputTokens: 0,
        cachedTokens: 0,
        outputTokens: 0,
        outcomes: new TraceOutcomes(),
      };
      this.#groups.set(group, use);
    }
    return use;
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
