import type { LiveTarget } from "./live-target.js";

/** Asks targets for their health at their intervals. Two failures in a row take a target out, one success brings it back. */
export class HealthProbes {
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(targets: Iterable<LiveTarget>, onChange: (target: LiveTarget, isOk: boolean) => void) {
    for (const target of targets) {
      const path = target.probePath;
      if (path === undefined) continue;
      let failures = 0;
      let isAsking = false;
      const ask = async (): Promise<void> => {
        if (isAsking) return;
        isAsking = true;
        const isOk = await probe(target, path);
        isAsking = false;
        failures = isOk ? 0 : failures + 1;
        const known = target.isProbeOk;
        if (isOk) target.isProbeOk = true;
        else if (failures >= 2) target.isProbeOk = false;
        if (target.isProbeOk !== known && target.isProbeOk !== undefined) onChange(target, target.isProbeOk);
      };
      void ask();
      const timer = setInterval(() => void ask(), target.config.probe.interval);
      timer.unref();
      this.#timers.add(timer);
    }
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }
}

async function probe(target: LiveTarget, path: string): Promise<boolean> {
  const signal = AbortSignal.timeout(target.config.probe.timeout);
  try {
    const answer = await target.pool.request({ method: "GET", path, signal });
    await answer.body.dump({ limit: 64 * 1024 });
    return answer.statusCode >= 200 && answer.statusCode < 300;
  } catch {
    return false;
  }
}
