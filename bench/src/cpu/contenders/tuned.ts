import { OctavoError } from "@octavo/protocol/errors";
import type { Contender, Job, MeasureContext, Measurement, Metric } from "./contender.js";

/** One way to run a peer: what results call it, and what the peer is told. */
export interface PeerSetting<T> {
  readonly name: string;
  readonly value: T;
}

/** The figure by which a job's settings are compared. Other jobs run with the first setting. */
const ranking: Readonly<Partial<Record<Job["kind"], Metric>>> = {
  prefill: "prefillTokensPerSecond",
  decode: "decodeTokensPerSecond",
  "shared-prefix": "endToEndTokensPerSecond",
  server: "serverTokensPerSecond",
};

export interface TunablePeer<T> {
  readonly name: string;
  readonly supports: Contender["supports"];
  /** The peer's defaults come first. */
  readonly settings: readonly PeerSetting<T>[];
  measure(job: Job, context: MeasureContext, value: T): Promise<Measurement>;
}

/**
 * A peer at its best: before each case it is measured once with every setting, and the fastest one is kept for the case. A setting
 * that fails is left out; all of them failing fails the case.
 */
export function tuned<T>(peer: TunablePeer<T>): Contender {
  const [defaults, ...others] = peer.settings;
  if (defaults === undefined)
    throw new OctavoError("internal_error", `${peer.name} has no setting to run with`);
  let chosen = defaults;
  return {
    name: peer.name,
    supports: (job) => peer.supports(job),
    setting: () => chosen.name,
    async prepare(job, context) {
      chosen = defaults;
      const metric = ranking[job.kind];
      if (metric === undefined || others.length === 0) return;
      let best = -Infinity;
      let failure: unknown;
      for (const setting of peer.settings) {
        try {
          const value = (await peer.measure(job, context, setting.value))[metric] ?? -Infinity;
          if (value <= best) continue;
          best = value;
          chosen = setting;
        } catch (thrown) {
          failure = thrown;
        }
      }
      if (best === -Infinity) throw OctavoError.from(failure);
    },
    measure: (job, context) => peer.measure(job, context, chosen.value),
  };
}
