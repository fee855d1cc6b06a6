import { createProgressBar, type LoadProgress, type ProgressStream } from "@octavo/engine";
import { progressBar } from "./progress-text.js";

/** Shows a download with the engine's bar, and packing as one line that is redrawn on a terminal, plain elsewhere. */
export function createLoadingLine(stream: ProgressStream): {
  readonly update: (state: LoadProgress) => void;
  /** Prints a line of its own in place of the one being redrawn. */
  readonly warn: (message: string) => void;
  readonly end: () => void;
} {
  const showDownload = createProgressBar(stream);
  let phase = "";
  let drawnMs = 0;
  return {
    update(state) {
      if (state.download !== undefined) {
        showDownload(state.download);
        return;
      }
      if (!stream.isTTY) {
        if (state.phase !== phase) stream.write(`${state.phase} (${mebibytes(state.totalBytes)})\n`);
        phase = state.phase;
        return;
      }
      const now = performance.now();
      const finished = state.doneBytes >= state.totalBytes;
      if (now - drawnMs < 80 && !finished && state.phase === phase) return;
      phase = state.phase;
      drawnMs = now;
      const share = state.totalBytes === 0 ? 1 : state.doneBytes / state.totalBytes;
      stream.write(
        `\r\u001b[2K${state.phase} ${progressBar(share, 24)} ` +
          `${mebibytes(state.doneBytes)} of ${mebibytes(state.totalBytes)}`,
      );
    },
    warn(message) {
      if (stream.isTTY && phase !== "") stream.write("\r\u001b[2K");
      stream.write(`octavo: ${message}\n`);
    },
    end() {
      if (stream.isTTY && phase !== "") stream.write("\n");
    },
  };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`;
}
