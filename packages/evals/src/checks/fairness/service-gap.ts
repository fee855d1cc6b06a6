import type { Observation } from "../observation.js";

/** Tokens that a tenant was given: a prompt token that was computed counts 1, one of output 2 (VTC, Sheng et al. 2024). */
interface Service {
  readonly tenant: string;
  readonly atMs: number;
  readonly tokens: number;
}

interface ServiceGap {
  /** Most that another tenant was served, beyond what this one was, while this one had a request waiting. */
  readonly tokens: number;
  readonly other: string;
  readonly atMs: number;
}

const outputWeight = 2;

/** What was served when, as far as answers tell: the prompt at the first token, output as it came. */
export function servicesOf(observations: readonly Observation[]): readonly Service[] {
  const services: Service[] = [];
  for (const seen of observations) {
    const { tenant = "", promptTokens, completionTokens, firstTokenMs, scheduledEpochMs } = seen;
    if (promptTokens === undefined || completionTokens === undefined || firstTokenMs === undefined) continue;
    let atMs = scheduledEpochMs + firstTokenMs;
    services.push({ tenant, atMs, tokens: promptTokens * (1 - (seen.cacheHitRatio ?? 0)) });
    const gaps = seen.gapsMs.length > 0 ? seen.gapsMs : [Math.max(0, seen.durationMs - firstTokenMs)];
    const each = (outputWeight * completionTokens) / (gaps.length + 1);
    services.push({ tenant, atMs, tokens: each });
    for (const gapMs of gaps) {
      atMs += gapMs;
      services.push({ tenant, atMs, tokens: each });
    }
  }
  return services.toSorted((a, b) => a.atMs - b.atMs);
}

/**
 * The service gap of VTC (arXiv 2401.00588) over the stretches in which the tenant had a request without its first token:
 * only a tenant with waiting requests can be owed service. Under VTC it stays below twice the cost of the longest prompt or of a full step.
 */
export function serviceGap(observations: readonly Observation[], tenant: string): ServiceGap | undefined {
  const services = servicesOf(observations);
  let worst: ServiceGap | undefined;
  for (const [from, to] of waitsOf(observations, tenant)) {
    const served = new Map<string, number>();
    for (let i = firstAfter(services, from); i < services.length && services[i]!.atMs <= to; i++) {
      const { tenant: other, tokens, atMs } = services[i]!;
      const sum = (served.get(other) ?? 0) + tokens;
      served.set(other, sum);
      if (other === tenant) continue;
      const gap = sum - (served.get(tenant) ?? 0);
      if (worst === undefined || gap > worst.tokens) worst = { tokens: gap, other, atMs };
    }
  }
  return worst;
}

/** Stretches in which it waited for at least one first token. */
function waitsOf(
  observations: readonly Observation[],
  tenant: string,
): readonly (readonly [number, number])[] {
  const waits = observations
    .filter((seen) => seen.tenant === tenant)
    .map((seen): [number, number] => [
      seen.scheduledEpochMs,
      seen.scheduledEpochMs + (seen.firstTokenMs ?? seen.durationMs),
    ])
    .toSorted((a, b) => a[0] - b[0]);
  const joined: [number, number][] = [];
  for (const [from, to] of waits) {
    const last = joined.at(-1);
    if (last === undefined || from > last[1]) joined.push([from, to]);
    else last[1] = Math.max(last[1], to);
  }
  return joined;
}

function firstAfter(services: readonly Service[], atMs: number): number {
  let [low, high] = [0, services.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (services[middle]!.atMs < atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}
