import { defaultTenant, type Evidence } from "@octavo/engine";
import type { AlertExample, AlertIdentity, Finding } from "./alert.js";

/** An alert as reported, when it starts firing and when it resolves. */
export interface Alert extends Finding {
  readonly status: "firing" | "resolved";
  /** Ms since 1970. */
  readonly startsAtMs: number;
  readonly endsAtMs: number | undefined;
  readonly example: AlertExample | undefined;
}

export interface AlertCenterOptions {
  readonly evidence: Pick<Evidence, "request">;
  readonly onAlert: (alert: Alert) => void;
  /** Default `Date.now`. */
  readonly epochNow?: () => number;
}

const mostCulprits = 4;

/** Turns repeated findings of detectors into alerts that start once and resolve once. */
export class AlertCenter {
  readonly #options: AlertCenterOptions;
  readonly #active = new Map<string, Alert>();

  constructor(options: AlertCenterOptions) {
    this.#options = options;
  }

  get active(): readonly Alert[] {
    return [...this.#active.values()];
  }

  /** Takes all current findings; alerts that are not among them resolve. */
  update(findings: readonly Finding[]): void {
    const nowMs = (this.#options.epochNow ?? Date.now)();
    const seen = new Set<string>();
    for (const finding of findings) {
      const key = keyOf(finding);
      seen.add(key);
      const known = this.#active.get(key);
      if (known !== undefined) {
        this.#active.set(key, { ...known, ...finding, reason: known.reason });
        continue;
      }
      const alert: Alert = {
        ...finding,
        status: "firing",
        startsAtMs: nowMs,
        endsAtMs: undefined,
        example: this.#example(finding.exampleRequestId),
      };
      this.#active.set(key, alert);
      this.#options.onAlert(alert);
    }
    for (const [key, alert] of this.#active) {
      if (seen.has(key)) continue;
      this.#active.delete(key);
      this.#options.onAlert({ ...alert, status: "resolved", endsAtMs: nowMs });
    }
  }

  #example(requestId: string | undefined): AlertExample | undefined {
    if (requestId === undefined) return undefined;
    const known = this.#options.evidence.request(requestId);
    const slowest = known?.slowGaps[0] ?? known?.firstToken;
    const culprits = (slowest?.parts ?? [])
      .flatMap(({ requests }) => requests ?? [])
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, mostCulprits)
      .map(({ requestId: culprit, tenant }) => ({
        requestId: culprit,
        tenant: tenant === defaultTenant ? undefined : tenant,
      }));
    return { requestId, culprits };
  }
}

function keyOf({ detector, form, tenant }: AlertIdentity): string {
  return JSON.stringify([detector, form, tenant ?? null]);
}

/** A one-line summary. */
export function alertText(alert: Alert): string {
  const { detector, form, tenant, reason, value, baseline, threshold, unit, status } = alert;
  const shown = (amount: number): string =>
    unit === "seconds" ? `${Number(amount.toPrecision(3))} s` : `${(100 * amount).toFixed(1)} %`;
  const whose = tenant === undefined ? "" : ` of tenant ${tenant}`;
  const usual = baseline === undefined ? "" : `, usually ${shown(baseline)}`;
  const test = form === "sequential" ? "" : " by rule";
  return `${detector.replaceAll("_", " ")}${whose} ${status}${test}: ${shown(value)}${usual}, allowed ${shown(threshold)}; reason: ${reason}`;
}
