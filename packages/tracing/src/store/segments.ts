import { readdir, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";

/**
 * A store is a folder of segments: `spans-START-HOST-PID-N.jsonl` while a process writes it, the same name with `.parquet`
 * once it is full. A segment is whole under one of its names at any moment; where both exist, the Parquet file counts.
 */
export interface Segment {
  /** Path without the ending. */
  readonly stem: string;
  readonly isParquet: boolean;
  /** When it was begun, ms since 1970. */
  readonly startMs: number;
  readonly pid: number;
  readonly host: string;
}

const pattern = /^spans-(\d{13})-([A-Za-z0-9_.]+)-(\d+)-(\d+)\.(jsonl|parquet)$/;

export const thisHost = hostname().replaceAll(/[^A-Za-z0-9_.]/g, "_") || "host";

export function segmentName(startMs: number, number: number): string {
  return `spans-${String(Math.floor(startMs)).padStart(13, "0")}-${thisHost}-${process.pid}-${number}`;
}

/** Oldest first. A folder that is not there has none. */
export async function listSegments(folder: string): Promise<readonly Segment[]> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const byStem = new Map<string, Segment>();
  for (const name of names.toSorted((left, right) => (left < right ? -1 : 1))) {
    const [, startMs, host, pid, , ending] = pattern.exec(name) ?? [];
    if (startMs === undefined || host === undefined || pid === undefined) continue;
    const stem = join(folder, name.slice(0, name.lastIndexOf(".")));
    const isParquet = ending === "parquet";
    if (!isParquet && byStem.has(stem)) continue;
    byStem.set(stem, { stem, isParquet, startMs: Number(startMs), pid: Number(pid), host });
  }
  return [...byStem.values()].toSorted((left, right) => left.startMs - right.startMs);
}

/**
 * Whether the process that began the segment may still write to it; true if it ran on another machine, since this one cannot tell. A
 * process with our id that began it before we started is an earlier one: a restarted container reuses process ids and host names.
 */
export function mayBeWritten({ isParquet, pid, host, startMs }: Segment): boolean {
  if (isParquet) return false;
  if (host !== thisHost) return true;
  if (pid === process.pid) return startMs >= Math.floor(performance.timeOrigin);
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown && thrown.code === "EPERM";
  }
}

export interface StoreLimits {
  /** All segments together; the oldest are removed beyond it. */
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** A segment of lines that was not written to for so long belongs to nobody who is in need of it. */
const quietMs = 3_600_000;

/**
 * Removes the oldest segments beyond the limits, lines that nobody turned into Parquet included: their machine may never come back.
 * @param current stem of the segment that the caller writes
 */
export async function removeOld(
  folder: string,
  limits: StoreLimits,
  nowMs: number,
  current: string,
): Promise<void> {
  let total = 0;
  for (const { stem, isParquet } of (await listSegments(folder)).toReversed()) {
    const path = `${stem}.${isParquet ? "parquet" : "jsonl"}`;
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    total += found.size;
    const ageMs = nowMs - found.mtimeMs;
    const mayGo = stem !== current && (isParquet || ageMs > quietMs);
    if (mayGo && (total > limits.maxBytes || ageMs > limits.maxAgeMs)) await rm(path, { force: true });
  }
  await removeTorn(folder, nowMs);
}

/** What a conversion that was killed left. */
async function removeTorn(folder: string, nowMs: number): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((other) => /^spans-.*\.partial$/.test(other))) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && nowMs - found.mtimeMs > quietMs) await rm(path, { force: true });
  }
}
