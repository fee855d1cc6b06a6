import { ClusterBootstrap, type Interval, wilsonInterval } from "@octavo/statistics";
import type { OutputKind, Score } from "../evaluators/evaluator.js";
import { maxSlots } from "./cluster-slots.js";
import { Counts } from "./counts.js";
import type { SliceSummary } from "./summary.js";

const resamples = 1000;
/** Numbers in one slot: scored, sum of values, passed. */
const width = 3;

export interface SliceSettings {
  readonly output: OutputKind;
  readonly hasClusters: boolean;
  readonly confidence: number;
  readonly seed: number;
}

/** One evaluator's scores of one slice of the cases, as sums by slot of clusters. */
export class SliceSums {
  #slots = new Float64Array(8 * width);
  #numSkipped = 0;
  #numFailed = 0;
  readonly #labels = new Counts();

  add(slot: number, score: Score): void {
    if (score.status === "skipped") this.#numSkipped++;
    else if (score.status === "failed") this.#numFailed++;
    else {
      if ((slot + 1) * width > this.#slots.length) this.#grow(slot);
      const at = slot * width;
      this.#slots[at]! += 1;
      this.#slots[at + 1]! += score.value;
      if (score.passed) this.#slots[at + 2]! += 1;
      if (score.label !== undefined) this.#labels.add(score.label);
    }
  }

  summary(settings: SliceSettings): SliceSummary {
    const clusters = this.#clusters();
    const [numScored, sum, numPassed] = clusters.reduce<[number, number, number]>(
      (all, own) => [all[0] + own[0]!, all[1] + own[1]!, all[2] + own[2]!],
      [0, 0, 0],
    );
    const isScored = numScored > 0;
    const passRateInterval = isScored ? passRateOf(clusters, numScored, numPassed, settings) : undefined;
    const meanInterval =
      settings.output === "pass_fail" && sum === numPassed
        ? passRateInterval
        : bootstrapped(clusters, ([count, total]) => total! / count!, settings);
    return {
      numScored,
      numPassed,
      numSkipped: this.#numSkipped,
      numFailed: this.#numFailed,
      mean: isScored ? sum / numScored : undefined,
      meanInterval,
      passRate: isScored ? numPassed / numScored : undefined,
      passRateInterval,
      labels: this.#labels.list(),
    };
  }

  #clusters(): (readonly number[])[] {
    const clusters: number[][] = [];
    for (let at = 0; at < this.#slots.length; at += width) {
      if (this.#slots[at]! > 0) clusters.push([...this.#slots.subarray(at, at + width)]);
    }
    return clusters;
  }

  #grow(slot: number): void {
    const wanted = Math.min(maxSlots, Math.max(slot + 1, (this.#slots.length / width) * 2));
    const larger = new Float64Array(wanted * width);
    larger.set(this.#slots);
    this.#slots = larger;
  }
}

type Clusters = readonly (readonly number[])[];

/** Wilson's interval where cases are independent; by resampling clusters where they are not. */
function passRateOf(
  clusters: Clusters,
  numScored: number,
  numPassed: number,
  settings: SliceSettings,
): Interval | undefined {
  if (!settings.hasClusters) return wilsonInterval(numPassed, numScored, settings.confidence);
  if (numPassed > 0 && numPassed < numScored) {
    return bootstrapped(clusters, ([count, , passed]) => passed! / count!, settings);
  }
  // resampling equal clusters would give certainty: each counts as one case that went as all the others did
  const alike = numPassed === 0 ? 0 : clusters.length;
  return wilsonInterval(alike, clusters.length, settings.confidence);
}

function bootstrapped(
  clusters: Clusters,
  statistic: (sums: readonly number[]) => number,
  { confidence, seed }: SliceSettings,
): Interval | undefined {
  const [first] = clusters;
  if (first === undefined || clusters.every((own) => statistic(own) === statistic(first))) return undefined;
  const [drawn] = new ClusterBootstrap(clusters.length, resamples, seed).sample(clusters, [statistic]);
  return drawn?.interval(confidence);
}
