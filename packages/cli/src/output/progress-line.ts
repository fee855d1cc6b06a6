import type { ProgressStream } from "@octavo/engine";
import { progressBar } from "./progress-text.js";
import { isCapable } from "@octavo/artifacts/hub/progress-bar";

const barWidth = 24;
const redrawMs = 80;
const plainStep = 0.1;

export interface ProgressState {
  /** From 0 to 1. */
  readonly share: number;
  /** Beside the bar; the only thing that is written where there is no terminal. */
  readonly text: string;
  /** Worth a line of its own where lines are plain, or being drawn at once. */
  readonly isNews?: boolean | undefined;
}

export interface TerminalLine {
  readonly update: (state: ProgressState) => void;
  /** Prints a line of its own in place of the one being redrawn. */
  readonly warn: (message: string) => void;
  readonly end: () => void;
}

/**
 * How far something is: on a capable terminal one line with a bar, redrawn, no wider than the terminal; elsewhere a plain line at every tenth of
 * the way and for news.
 */
export function createTerminalLine(stream: ProgressStream): TerminalLine {
  let isDrawn = false;
  let drawnMs = 0;
  let nextPlain = 0;
  return {
    update({ share, text, isNews = false }) {
      if (isCapable(stream)) {
        const now = performance.now();
        if (isDrawn && !isNews && share < 1 && now - drawnMs < redrawMs) return;
        isDrawn = true;
        drawnMs = now;
        stream.write(`\r\u001b[2K${lineWithin(share, text, stream.columns ?? 80)}`);
        return;
      }
      if (share + 1e-9 < nextPlain && !isNews) return;
      // 1 is written once
      nextPlain = share >= 1 ? Infinity : (Math.floor(share / plainStep + 1e-9) + 1) * plainStep;
      stream.write(`${text}\n`);
    },
    warn(message) {
      if (isDrawn) stream.write("\r\u001b[2K");
      stream.write(`octavo: ${message}\n`);
    },
    end() {
      if (isDrawn) stream.write("\n");
      isDrawn = false;
    },
  };
}

/** The bar gives way to the text; the last column stays free, so that terminals do not wrap. */
function lineWithin(share: number, text: string, columns: number): string {
  const room = Math.max(1, columns - 1);
  const width = Math.min(barWidth, room - text.length - 3);
  if (width >= 5) return `${progressBar(share, width)} ${text}`;
  return text.length <= room ? text : `${text.slice(0, room - 1)}\u2026`;
}
