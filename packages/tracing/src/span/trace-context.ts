import { randomFillSync } from "node:crypto";

/** Where a call stands in a distributed trace: what W3C's `traceparent` and `tracestate` carry. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  /** Carried on as it came; undefined when there is none or it is malformed. */
  readonly traceState: string | undefined;
}

const traceParentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const noTrace = "0".repeat(32);
const noSpan = "0".repeat(16);
/** Longer values are legal but ignored: nobody's vendor data is worth unbounded memory. */
const maxTraceStateLength = 512;
const traceStateMember = /^[ \t]*[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,256}[ \t]*$/;

/**
 * Reads the two headers of W3C Trace Context (level 1, and versions after it by its rule for unknown versions).
 * Anything malformed, repeated or all zero is no context at all; a bad `tracestate` alone is dropped alone.
 */
export function parseTraceContext(traceParent: unknown, traceState?: unknown): TraceContext | undefined {
  if (typeof traceParent !== "string" || traceParent.length > 256) return undefined;
  const [, version, traceId, spanId, flags, rest] = traceParentPattern.exec(traceParent.trim()) ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined)
    return undefined;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (traceId === noTrace || spanId === noSpan) return undefined;
  return {
    traceId,
    spanId,
    isSampled: (Number.parseInt(flags, 16) & 1) === 1,
    traceState: readTraceState(traceState),
  };
}

function readTraceState(value: unknown): string | undefined {
  const text = Array.isArray(value) ? value.join(",") : value;
  if (typeof text !== "string" || text === "" || text.length > maxTraceStateLength) return undefined;
  const members = text.split(",").filter((member) => member.trim() !== "");
  if (members.length === 0 || members.length > 32) return undefined;
  return members.every((member) => traceStateMember.test(member)) ? text : undefined;
}

/** The `traceparent` header of calls made under this context. */
export function formatTraceParent(context: Pick<TraceContext, "traceId" | "spanId" | "isSampled">): string {
  return `00-${context.traceId}-${context.spanId}-${context.isSampled ? "01" : "00"}`;
}

/** Random bytes drawn many at a time: an id costs two slices of a string. */
const pool = Buffer.alloc(4096);
let drawn = pool.length;

function randomHex(numBytes: number): string {
  if (drawn + numBytes > pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  const hex = pool.toString("hex", drawn, drawn + numBytes);
  drawn += numBytes;
  return hex;
}

export function newTraceId(): string {
  const id = randomHex(16);
  return id === noTrace ? newTraceId() : id;
}

export function newSpanId(): string {
  const id = randomHex(8);
  return id === noSpan ? newSpanId() : id;
}

/** Keeps a share of new traces, by the trace's id, so that every process decides alike. */
export function isSampledByRatio(traceId: string, ratio: number): boolean {
  if (ratio >= 1) return true;
  return Number.parseInt(traceId.slice(-8), 16) / 2 ** 32 < ratio;
}

/** The context of a new span below `parent`, or of a new trace. */
export function childContext(parent: TraceContext | undefined, sampleRatio: number): TraceContext {
  const traceId = parent?.traceId ?? newTraceId();
  return {
    traceId,
    spanId: newSpanId(),
    isSampled: parent?.isSampled ?? isSampledByRatio(traceId, sampleRatio),
    traceState: parent?.traceState,
  };
}
