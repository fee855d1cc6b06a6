import type { ProgressStream } from "@octavo/engine";
import type { SearchProgress } from "@octavo/optimize";
import { createTerminalLine, type TerminalLine } from "./progress-line.js";

/** How far a search is; each better candidate is news. */
export function createOptimizeLine(
  stream: ProgressStream,
): Omit<TerminalLine, "update"> & { readonly update: (progress: SearchProgress) => void } {
  const line = createTerminalLine(stream);
  let said: number | undefined;
  return {
    ...line,
    update(progress) {
      const { share, bestScore } = progress;
      line.update({ share, text: textOf(progress), isNews: bestScore !== said });
      said = bestScore;
    },
  };
}

function textOf({ phase, share, spent, numValidated, seedScore, bestScore }: SearchProgress): string {
  if (phase === "held-out") return "held-out cases";
  const scores =
    bestScore === undefined || seedScore === undefined
      ? "scoring what stands in the files"
      : `${numValidated} candidates, best ${percent(bestScore)} (today ${percent(seedScore)})`;
  return `${Math.floor(share * 100)} % of the budget, ${spent.calls} calls, ${scores}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
