import type { ProgressStream } from "@octavo/engine";
import type { QuantizeProgress } from "@octavo/studio/quantize";

const barWidth = 24;
const plainStep = 0.1;

/** One line redrawn on a terminal, at every tenth of the way a plain one elsewhere: how far, which layer, how long still. */
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
        const filled = Math.round(progress.share * barWidth);
        stream.write(`\r\u001b[2K[${"=".repeat(filled)}${" ".repeat(barWidth - filled)}] ${text}`);
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
  const left = leftMs === undefined || share >= 1 ? "" : `, ${duration(leftMs)} left`;
  const where = share >= 1 ? "done" : unit;
  return `${Math.floor(share * 100)} %, ${doneUnits} of ${totalUnits} parts, ${where}${left}`;
}

function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
