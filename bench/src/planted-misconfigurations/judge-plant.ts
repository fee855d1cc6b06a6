import type { FixProof } from "@octavo/optimize";
import type { Misconfiguration } from "./plants.js";
import { recordPlant, runCommand } from "./record.js";

interface ListedEntry {
  readonly id: string;
  readonly kind: string;
  readonly cause: string;
  readonly count: number;
  readonly lost_ms: number;
  readonly fix: { readonly set: Readonly<Record<string, unknown>> } | null;
}

export interface JudgedPlant {
  readonly name: string;
  readonly clusters: readonly (readonly [string, number])[];
  readonly proposed: Readonly<Record<string, unknown>> | undefined;
  readonly isRight: boolean;
  readonly proof: Pick<FixProof, "verdict" | "reason" | "target" | "pairs"> | undefined;
  readonly wrong: readonly {
    readonly patch: string;
    readonly verdict: FixProof["verdict"];
    readonly reason: string;
    readonly pairs: number;
  }[];
}

export interface JudgingOptions {
  readonly seed: number;
  /** Of replays of each patch, right or wrong, at each of three looks. */
  readonly pairs: number;
  /** Patches that right nothing. */
  readonly wrong: number;
  /** Whether the right patch is replayed. */
  readonly right: boolean;
}

/** Records a plant, asks the feed what to change for the largest cluster that a setting answers, and has replay judge that and patches that right nothing. */
export async function judgeMisconfiguration(
  plant: Misconfiguration,
  folder: string,
  { seed, pairs, wrong, right: isReplayed }: JudgingOptions,
): Promise<JudgedPlant> {
  const { config, spans, state } = await recordPlant(plant, folder, seed);
  const given = ["--spans", spans, "--state", state, "--config", config, ...plant.limits, "--json"];
  const listed = JSON.parse(await runCommand(["errors", "list", ...given])) as {
    readonly entries: readonly ListedEntry[];
  };
  const entries = listed.entries.toSorted((a, b) => b.count - a.count);
  const entry = entries.find(({ fix }) => fix !== null);
  const clusters = entries.map(({ kind, cause, count }) => [`${kind} ${cause}`, count] as const);
  const prove = async (...more: readonly string[]): Promise<FixProof> => {
    const own = plant.evaluator === undefined ? [] : ["--evaluator", JSON.stringify(plant.evaluator)];
    const args = ["errors", "prove", entry?.id ?? "", ...given, ...own, "--pairs", String(pairs), ...more];
    return JSON.parse(await runCommand(args)) as FixProof;
  };
  const { name, right } = plant;
  const proposed = entry?.fix?.set;
  const isRight = proposed !== undefined && Object.keys(proposed).includes(right);
  if (entry === undefined) return { name, clusters, proposed, isRight, proof: undefined, wrong: [] };
  const trials = [];
  for (const [setting, value] of plant.wrong.slice(0, wrong)) {
    const patch = `${setting}=${value}`;
    const { verdict, reason, pairs: replayed } = await prove("--set", patch);
    trials.push({ patch, verdict, reason, pairs: replayed });
  }
  if (!isRight || !isReplayed) return { name, clusters, proposed, isRight, proof: undefined, wrong: trials };
  const { verdict, reason, target, pairs: proven } = await prove();
  const proof = { verdict, reason, target, pairs: proven };
  return { name, clusters, proposed, isRight, proof, wrong: trials };
}
