import type { ProgressStream } from "@octavo/engine";
import type { SearchProgress } from "@octavo/optimize";
import { progressBar } from "./progress-text.js";

const redrawMs = 100;
const plainStep = 0.1;

/** How far a search is: on a terminal one line, redrawn; elsewhere a plain line at every tenth of the budget and for each better candidate. */
export function createOptimizeLine(stream: ProgressStream): {
  readonly update: (progress: SearchProgress) => void;
  readonly end: () => void;
} {
  let drawnMs = 0;
  let isDrawn = false;
  let nextPlain = 0;
  let said: number | undefined;
  return {
    update(progress) {
      const { share, bestScore } = progress;
      if (stream.isTTY === true) {
        if (performance.now() - drawnMs < redrawMs) return;
        drawnMs = performance.now();
        isDrawn = true;
        stream.write(
          `\r\u001b[2K${progressBar(share, 24)} ${textOf(progress)}`.slice(0, (stream.columns ?? 100) + 4),
        );
        return;
      }
      if (share < nextPlain && bestScore === said) return;
      said = bestScore;
      nextPlain = Math.max(nextPlain, (Math.floor(share / plainStep + 1e-9) + 1) * plainStep);
      stream.write(`${textOf(progress)}\n`);
    },
    end() {
      if (isDrawn) stream.write("\n");
      isDrawn = false;
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
