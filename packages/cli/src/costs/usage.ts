/** What the requests of a group took. */
export interface GroupUse {
  /** Null for requests that lack the fact. */
  readonly group: string | null;
  readonly requests: number;
  readonly gpuSeconds: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly traces: number;
  readonly successfulTraces: number;
}

/** What machines' time went to, in seconds. The parts add up to `seconds`. */
export interface MachineUse {
  readonly seconds: number;
  readonly computingSeconds: number;
  readonly overheadSeconds: number;
  readonly idleSeconds: number;
  /** At the rates that were recorded; undefined where none was. */
  readonly dollars: number | undefined;
}

export interface RecordedUsage {
  /** Ms since 1970, undefined of nothing. */
  readonly span: { readonly fromMs: number; readonly toMs: number } | undefined;
  readonly groups: readonly GroupUse[];
  /** Undefined where only requests are known. */
  readonly machine: MachineUse | undefined;
  /** Lines that are no records. */
  readonly unreadable: number;
}

export interface UsageFilter {
  readonly sinceMs?: number;
  /** Itself out. */
  readonly untilMs?: number;
  readonly model?: string;
  readonly tenant?: string;
  readonly feature?: string;
}
