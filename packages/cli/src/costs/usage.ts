/** Usage of a group's requests. */
export interface GroupUse {
  /** Null for requests without that field. */
  readonly group: string | null;
  readonly requests: number;
  readonly gpuSeconds: number;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly traces: number;
  readonly successfulTraces: number;
}

/** Machine time in seconds. The parts add up to `seconds`. */
export interface MachineUse {
  readonly seconds: number;
  readonly computingSeconds: number;
  readonly overheadSeconds: number;
  readonly idleSeconds: number;
  /** At the recorded rates; undefined without any. */
  readonly dollars: number | undefined;
}

export interface RecordedUsage {
  /** Ms since 1970; undefined without records. */
  readonly span: { readonly fromMs: number; readonly toMs: number } | undefined;
  readonly groups: readonly GroupUse[];
  /** Undefined if only requests were recorded. */
  readonly machine: MachineUse | undefined;
  /** Lines that are not records. */
  readonly unreadable: number;
}

export interface UsageFilter {
  readonly sinceMs?: number;
  /** Exclusive. */
  readonly untilMs?: number;
  readonly model?: string;
  readonly tenant?: string;
  readonly feature?: string;
}
