import { existsSync } from "node:fs";
import { readSpanValues, spanFilesOf, wantedCalls } from "@octavo/evals";
import {
  type CallFinding,
  findingsOfAlert,
  findingsOfGatewayLog,
  findingsOfSpan,
  type FindingLimits,
  type RecordedCall,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { defaultStoreFolder } from "@octavo/tracing/store";
import type { FeedCache } from "./feed-cache.js";

export interface FindingSources {
  readonly spans: readonly string[] | undefined;
  readonly gatewayLog: readonly string[] | undefined;
  readonly alerts: readonly string[] | undefined;
  readonly firstTokenMs: number;
  readonly gapMs: number;
  readonly score: number;
}

export interface ReadFindings {
  readonly findings: readonly CallFinding[];
  readonly calls: number;
  /** Dropped, as their quotes do not stand in what they quote. */
  readonly unverified: number;
}

/**
 * Findings of spans, of the gateway's logs and of alerts; of the default store where no source is given. Files that are as they were
 * when `cache` last saw them are not read. A span that is recorded twice has its findings once.
 */
export async function readFindings(sources: FindingSources, cache: FeedCache): Promise<ReadFindings> {
  const { gatewayLog = [], alerts = [], firstTokenMs, gapMs, score } = sources;
  const limits = { firstTokenMs, gapMs, score };
  const found: ReadFindings[] = [];
  const read = async (kind: string, files: readonly string[], make: () => Promise<ReadFindings>) =>
    found.push(
      await cache.recallOfFiles({ files, reading: JSON.stringify([kind, ...Object.values(limits)]) }, make),
    );
  for (const path of spanPaths(sources))
    for (const file of await spanFilesOf(path)) await read("spans", [file], () => ofSpans(file, limits));
  for (const path of gatewayLog)
    // what share of its attempts a target failed is of all files of a log
    await read("gateway", await spanFilesOf(path), async () =>
      findingsOfGatewayLog(await valuesOf(path), limits),
    );
  for (const path of alerts)
    for (const file of await spanFilesOf(path)) await read("alerts", [file], () => ofAlerts(file));
  const ofKnownSpans = new Set<string>();
  const findings = found
    .flatMap((one) => one.findings)
    .filter(({ id, spanId }) => {
      if (spanId === undefined) return true;
      const isNew = !ofKnownSpans.has(id);
      ofKnownSpans.add(id);
      return isNew;
    });
  const sum = (count: "calls" | "unverified") => found.reduce((total, one) => total + one[count], 0);
  return { findings, calls: sum("calls"), unverified: sum("unverified") };
}

async function ofSpans(file: string, limits: FindingLimits): Promise<ReadFindings> {
  const findings: CallFinding[] = [];
  let [calls, unverified] = [0, 0];
  for await (const value of readSpanValues(file))
    for (const span of wantedCalls(value, {})) {
      const found = findingsOfSpan(span, limits);
      calls += 1;
      unverified += found.unverified;
      findings.push(...found.findings);
    }
  return { findings, calls, unverified };
}

async function ofAlerts(file: string): Promise<ReadFindings> {
  const found = (await valuesOf(file)).map((value) => findingsOfAlert(value));
  return {
    findings: found.flatMap(({ findings }) => findings),
    calls: 0,
    unverified: found.reduce((sum, { unverified }) => sum + unverified, 0),
  };
}

/** The recorded calls, and which of them have a finding that is wanted. */
export async function readCalls(
  sources: FindingSources,
  isWanted: (finding: CallFinding) => boolean,
): Promise<readonly RecordedCall[]> {
  const calls: RecordedCall[] = [];
  for await (const { span } of spansOf(sources))
    calls.push({ span, isOfCluster: findingsOfSpan(span, sources).findings.some(isWanted) });
  return calls;
}

/** The lines of the gateway's log. */
export async function readGatewayLog({ gatewayLog = [] }: FindingSources): Promise<readonly unknown[]> {
  return (await Promise.all(gatewayLog.map(valuesOf))).flat();
}

function spanPaths({ spans, gatewayLog, alerts }: FindingSources): readonly string[] {
  const isElsewhere = gatewayLog !== undefined || alerts !== undefined;
  return spans ?? (isElsewhere ? [] : [ownStore()]);
}

async function* spansOf(sources: FindingSources) {
  for (const path of spanPaths(sources))
    for await (const value of readSpanValues(path)) for (const span of wantedCalls(value, {})) yield { span };
}

function ownStore(): string {
  const folder = defaultStoreFolder();
  if (existsSync(folder)) return folder;
  throw new OctavoError(
    "dataset_invalid",
    `no calls are recorded in ${folder}: octavo serve --trace-store auto records them there; --spans, --gateway-log and --alerts read others`,
    { param: "spans" },
  );
}

async function valuesOf(path: string): Promise<readonly unknown[]> {
  const values: unknown[] = [];
  for await (const value of readSpanValues(path)) values.push(value);
  return values;
}
