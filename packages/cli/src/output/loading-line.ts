import { createProgressBar, type LoadProgress, type ProgressStream } from "@octavo/engine";
import { createTerminalLine, type TerminalLine } from "./progress-line.js";
import { isCapable } from "@octavo/artifacts/hub/progress-bar";

/** Shows a download with the engine's bar, and packing as one line that is redrawn on a terminal, plain elsewhere. */
export function createLoadingLine(
  stream: ProgressStream,
): Omit<TerminalLine, "update"> & { readonly update: (state: LoadProgress) => void } {
  const showDownload = createProgressBar(stream);
  const line = createTerminalLine(stream);
  let phase = "";
  return {
    ...line,
    update(state) {
      const { doneBytes, totalBytes } = state;
      if (state.download !== undefined) {
        showDownload(state.download);
        return;
      }
      const isNews = state.phase !== phase;
      phase = state.phase;
      const share = totalBytes === 0 ? 1 : doneBytes / totalBytes;
      const amount = state.unit === undefined ? mebibytes : String;
      if (isCapable(stream))
        line.update({ share, isNews, text: `${phase} ${amount(doneBytes)} of ${amount(totalBytes)}` });
      else if (isNews) stream.write(`${phase} (${amount(totalBytes)})\n`);
    },
  };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`;
}
