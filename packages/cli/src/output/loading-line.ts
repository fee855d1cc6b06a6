/** How far loading has come; what the engine's progress callback reports. */
export interface LoadingState {
  readonly phase: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** One line that is redrawn on a terminal; elsewhere one line per phase. */
export function createLoadingLine(stream: { isTTY?: boolean; write(text: string): unknown }): {
  readonly update: (state: LoadingState) => void;
  readonly end: () => void;
} {
  let phase = "";
  let drawnMs = 0;
  return {
    update(state) {
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
      const filled = Math.round(share * 24);
      stream.write(
        `\r\u001b[2K${state.phase} [${"=".repeat(filled)}${" ".repeat(24 - filled)}] ` +
          `${mebibytes(state.doneBytes)} of ${mebibytes(state.totalBytes)}`,
      );
    },
    end() {
      if (stream.isTTY && phase !== "") stream.write("\n");
    },
  };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`;
}
