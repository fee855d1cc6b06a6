import { defaultTenant, type FinishedRequest, type RequestName } from "@octavo/engine";
import { noLabel, otherLabel } from "../metrics/bounded-labels.js";
import { type Finding, alertReasonOf } from "./alert.js";
import type { DecodeLatencyDetector } from "./decode-latency.js";
import { type Detector, type DetectorContext, SliceClock } from "./detector.js";
import { alarmThreshold } from "./e-detector.js";
import type { ObservedGap } from "./gap-reasons.js";
import { LatencySketch, RollingSketch } from "./latency-sketch.js";
import { TenantState, type WaitKind, waitKinds } from "./tenant-state.js";

const sliceMs = 15_000;
/** After a long idle period older slices are all empty. */
const mostSlices = 240;
/** The baseline decays by half in an hour. */
const decayPerMinute = 0.5 ** (1 / 60);
/** Four slices make a minute, five minutes the window of the rule. */
const slicesPerMinute = 4;
const windowMinutes = 5;
const leastForRule = 368;
const leastForUsual = 200;
const quantile = 0.99;
/** Tenants monitored at a time; one that was idle for an hour is dropped. */
const mostTenants = 128;
const silentSlices = 240;
/** First tokens explained per slice: explaining one costs as much as the overhead of a request. */
const mostExplained = 16;
/** Smaller excesses over the limit are ignored. */
const leastExcessMs: Readonly<Record<WaitKind, number>> = { first_token: 50, inter_token: 5 };

/**
 * Compares each tenant with the others: at most 1 % of its waits may exceed `tenantLatencyFactor` times the others' 99th percentile of
 * the last hours. The test compares how often this happens to the tenant and to the others in the same fifteen seconds, so that a
 * slowdown of all is not unfairness. It works for a tenant with few requests too, where the 99th percentile of 25 is their maximum.
 * Time spent on a request's own long prompt does not count.
 */
export class TenantLatencyDetector implements Detector {
  readonly #context: DetectorContext;
  readonly #explainGap: DecodeLatencyDetector["explain"];
  readonly #clock = new SliceClock(sliceMs);
  /** Sketches over all tenants. */
  readonly #usual: Readonly<Record<WaitKind, LatencySketch>> = {
    first_token: new LatencySketch(),
    inter_token: new LatencySketch(),
  };
  readonly #all = new RollingSketch(windowMinutes);
  readonly #tenants = new Map<string, TenantState>();
  #numExplained = 0;
  #slicesInMinute = 0;

  constructor(context: DetectorContext, explainGap: DecodeLatencyDetector["explain"]) {
    this.#context = context;
    this.#explainGap = explainGap;
  }

  /** Each tenant's 99th percentile of whole requests over that of all, in the last five minutes. */
  ratios(): ReadonlyMap<string, number> {
    const ratios = new Map<string, number>();
    const all = this.#all.total.quantile(quantile);
    for (const [name, tenant] of this.#tenants) {
      const own = tenant.requests.total.quantile(quantile);
      if (all !== undefined && own !== undefined) ratios.set(name, own / all);
    }
    return ratios;
  }

  observeGap(gap: ObservedGap): void {
    const { requestId, gapMs } = gap;
    const tenant = this.#tenant(gap.tenant);
    const limitMs = tenant.limitMs.inter_token;
    this.#usual.inter_token.add(gapMs);
    tenant.usual.inter_token.add(gapMs);
    const isLong = limitMs !== undefined && gapMs > limitMs;
    tenant.waits.inter_token.add(isLong, 0);
    if (!isLong) return;
    const { reason, excessMs } = this.#explainGap(gap);
    tenant.tally.add(reason, excessMs, requestId);
  }

  observeFirstToken({ requestId, tenant: given }: RequestName, waitedMs: number): void {
    const tenant = this.#tenant(given);
    const limitMs = tenant.limitMs.first_token;
    this.#usual.first_token.add(waitedMs);
    tenant.usual.first_token.add(waitedMs);
    const isLong = limitMs !== undefined && waitedMs > limitMs;
    if (!isLong || this.#numExplained >= mostExplained) {
      tenant.waits.first_token.add(isLong, 0);
      return;
    }
    this.#numExplained += 1;
    const explanation = this.#context.explainFirstToken(requestId);
    const reason = explanation === undefined ? "unknown" : alertReasonOf(explanation.cause);
    tenant.waits.first_token.add(true, reason === undefined ? 1 : 0);
    if (reason !== undefined) tenant.tally.add(reason, waitedMs, requestId);
  }

  observeFinished({ tenant, record }: FinishedRequest): void {
    if (record.timeToFirstTokenMs === undefined) return;
    this.#all.add(record.e2eMs);
    this.#tenant(tenant).requests.add(record.e2eMs);
  }

  evaluate(nowMs: number): readonly Finding[] {
    this.#clock.pass(nowMs, mostSlices, () => this.#endSlice());
    return this.#findings();
  }

  /** Tenants beyond the limit are monitored as one. */
  #tenant(engineTenant: string): TenantState {
    const given = engineTenant === defaultTenant ? noLabel : engineTenant;
    const isKnown = this.#tenants.has(given) || this.#tenants.size < mostTenants;
    const name = isKnown ? given : otherLabel;
    let tenant = this.#tenants.get(name);
    if (tenant === undefined) {
      tenant = new TenantState(windowMinutes);
      this.#tenants.set(name, tenant);
    }
    return tenant;
  }

  #endSlice(): void {
    this.#slicesInMinute = (this.#slicesInMinute + 1) % slicesPerMinute;
    const isMinute = this.#slicesInMinute === 0;
    const alarmAt = this.#alarmAt;
    for (const kind of waitKinds) {
      const all = { count: 0, long: 0 };
      for (const { waits } of this.#tenants.values()) {
        all.count += waits[kind].count;
        all.long += waits[kind].long;
      }
      for (const tenant of this.#tenants.values()) tenant.test(kind, all, 1 - quantile, alarmAt);
    }
    for (const [name, tenant] of this.#tenants) {
      tenant.endSlice(isMinute);
      if (tenant.silentSlices >= silentSlices) this.#tenants.delete(name);
    }
    this.#numExplained = 0;
    if (!isMinute) return;
    this.#all.rotate();
    for (const kind of waitKinds) this.#measure(kind);
  }

  /** A tenant's limit depends on the others' waits: its own would raise it. */
  #measure(kind: WaitKind): void {
    const { tenantLatencyFactor } = this.#context.thresholds;
    const all = this.#usual[kind];
    all.decay(decayPerMinute);
    for (const { usual } of this.#tenants.values()) usual[kind].decay(decayPerMinute);
    const ofAll = all.quantileWithout(undefined, quantile, leastForUsual);
    for (const { usual, limitMs, isComparable } of this.#tenants.values()) {
      const ofOthers = all.quantileWithout(usual[kind], quantile, leastForUsual);
      const p99Ms = ofOthers ?? ofAll;
      isComparable[kind] = ofOthers !== undefined;
      limitMs[kind] =
        p99Ms === undefined ? undefined : Math.max(tenantLatencyFactor * p99Ms, p99Ms + leastExcessMs[kind]);
    }
  }

  get #alarmAt(): number {
    const streams = Math.max(1, this.#tenants.size * waitKinds.length);
    return alarmThreshold(this.#context.thresholds.falseAlarmYears, sliceMs, streams);
  }

  #findings(): readonly Finding[] {
    const { hasRules, thresholds } = this.#context;
    const watched = [...this.#tenants].filter(([, { isFiring }]) => isFiring || hasRules);
    if (watched.length === 0) return [];
    const all = this.#all.total.quantile(quantile);
    const findings: Finding[] = [];
    for (const [name, tenant] of watched) {
      const own = tenant.requests.total.quantile(quantile);
      const isOver = all !== undefined && own !== undefined && own > thresholds.tenantLatencyFactor * all;
      const byRule = hasRules && isOver && tenant.requests.total.count >= leastForRule;
      if (!tenant.isFiring && !byRule) continue;
      const reasons = tenant.tally.shares();
      const finding = {
        detector: "tenant_latency" as const,
        tenant: name,
        reason: reasons[0]?.reason ?? ("unknown" as const),
        reasons,
        value: (own ?? 0) / 1000,
        baseline: all === undefined ? undefined : all / 1000,
        threshold: (thresholds.tenantLatencyFactor * (all ?? 0)) / 1000,
        unit: "seconds" as const,
        samples: tenant.requests.total.count,
        exampleRequestId: tenant.tally.worstRequestId,
      };
      if (tenant.isFiring) findings.push({ ...finding, form: "sequential", evidence: tenant.evidence });
      if (byRule) findings.push({ ...finding, form: "rule", evidence: undefined });
    }
    return findings;
  }
}
