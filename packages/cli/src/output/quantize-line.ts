import type { ProgressStream } from "@octavo/engine";
import type { QuantizeProgress } from "@octavo/studio/quantize";
import { progressBar, timeLeft } from "./progress-text.js";

const plainStep = 0.1;

/** On a terminal one line, redrawn; elsewhere a plain line at every tenth: how far, which layer, time left. */
export function createQuantizeLine(stream: ProgressStream): {
  readonly update: (progress: QuantizeProgress) => void;
  readonly warn: (message: string) => void;
  readonly end: () => void;
} {
  let nextPlain = 0;
  let drawn = false;
  return {
    update(progress) {
      const text = describe(progress);
      if (stream.isTTY === true) {
        stream.write(`\r\u001b[2K${progressBar(progress.share, 24)} ${text}`);
        drawn = true;
        return;
      }
      if (progress.share < nextPlain && progress.share < 1) return;
      nextPlain = (Math.floor(progress.share / plainStep + 1e-9) + 1) * plainStep;
      stream.write(`${text}\n`);
    },
    warn(message) {
      if (drawn) stream.write("\r\u001b[2K");
      stream.write(`octavo: ${message}\n`);
    },
    end() {
      if (drawn) stream.write("\n");
      drawn = false;
    },
  };
}

function describe({ share, unit, doneUnits, totalUnits, leftMs }: QuantizeProgress): string {
  const left = leftMs === undefined || share >= 1 ? "" : `, ${timeLeft(leftMs)} left`;
  const where = share >= 1 ? "done" : unit;
  return `${Math.floor(share * 100)} %, ${doneUnits} of ${totalUnits} parts, ${where}${left}`;
}
