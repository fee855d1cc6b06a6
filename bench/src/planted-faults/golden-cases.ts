import { jsonlDataset, type EvalCase } from "@octavo/evals";
import { cases, type TaskName } from "@octavo/octavo-mini";

export interface GoldenCases {
  readonly task: TaskName;
  readonly count: number;
  /** Wanted prompt length, for retrieval. */
  readonly contextTokens?: number;
}

/** Held-out cases of octavo-mini's world, other ones for every seed, as a dataset file would have them. */
export async function goldenCases(seed: number, parts: readonly GoldenCases[]): Promise<readonly EvalCase[]> {
  const golden: EvalCase[] = [];
  for (const { task, count, contextTokens } of parts) {
    const stream = cases({
      task,
      split: "heldout",
      seed: `planted ${seed} ${contextTokens ?? ""}`,
      ...(contextTokens === undefined ? {} : { contextTokens }),
    });
    const lines = Array.from({ length: count }, () => `${JSON.stringify(stream.next().value)}\n`);
    const source = {
      path: `${task} ${seed}`,
      async *bytes() {
        yield Buffer.from(lines.join(""));
      },
    };
    for await (const one of jsonlDataset(source).cases()) {
      const id = `${task}-${contextTokens ?? ""}-${seed}-${one.id}`;
      golden.push({ ...one, id, parameters: { ...one.parameters, maxTokens: 160 } });
    }
  }
  return golden;
}
