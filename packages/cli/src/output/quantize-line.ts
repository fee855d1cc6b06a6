import type { ProgressStream } from "@octavo/engine";
import type { QuantizeProgress } from "@octavo/studio/quantize";
import { createTerminalLine, type TerminalLine } from "./progress-line.js";
import { timeLeft } from "./progress-text.js";

/** How far, which layer, time left. */
export function createQuantizeLine(
  stream: ProgressStream,
): Omit<TerminalLine, "update"> & { readonly update: (progress: QuantizeProgress) => void } {
  const line = createTerminalLine(stream);
  return {
    ...line,
    update: (progress) => line.update({ share: progress.share, text: describe(progress) }),
  };
}

function describe({ share, unit, doneUnits, totalUnits, leftMs }: QuantizeProgress): string {
  const left = leftMs === undefined || share >= 1 ? "" : `, ${timeLeft(leftMs)} left`;
  const where = share >= 1 ? "done" : unit;
  return `${Math.floor(share * 100)} %, ${doneUnits} of ${totalUnits} parts, ${where}${left}`;
}
