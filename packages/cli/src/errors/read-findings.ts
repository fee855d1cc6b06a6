import { existsSync } from "node:fs";
import { readSpanValues, wantedCalls } from "@octavo/evals";
import {
  type CallFinding,
  findingsOfAlert,
  findingsOfGatewayLog,
  findingsOfSpan,
  type RecordedCall,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { defaultStoreFolder } from "@octavo/tracing/store";

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

/** Findings of spans, of the gateway's logs and of alerts; of the default store where no source is given. */
export async function readFindings(sources: FindingSources): Promise<ReadFindings> {
  const { gatewayLog = [], alerts = [] } = sources;
  const findings: CallFinding[] = [];
  let [calls, unverified] = [0, 0];
  for await (const { span } of spansOf(sources)) {
    const found = findingsOfSpan(span, sources);
    calls += 1;
    unverified += found.unverified;
    findings.push(...found.findings);
  }
  for (const path of gatewayLog) {
    const found = findingsOfGatewayLog(await valuesOf(path), sources);
    calls += found.calls;
    unverified += found.unverified;
    for (const finding of found.findings) findings.push(finding);
  }
  for (const path of alerts)
    for await (const value of readSpanValues(path)) {
      const found = findingsOfAlert(value);
      unverified += found.unverified;
      findings.push(...found.findings);
    }
  return { findings, calls, unverified };
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

async function* spansOf({ spans, gatewayLog, alerts }: FindingSources) {
  const isElsewhere = gatewayLog !== undefined || alerts !== undefined;
  for (const path of spans ?? (isElsewhere ? [] : [ownStore()]))
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
