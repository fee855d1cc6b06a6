import type { ProgressStream } from "@octavo/engine";
import type { LoadTestOptions } from "@octavo/loadtest";
import { createTerminalLine, type TerminalLine } from "./progress-line.js";

type LoadProgress = Parameters<NonNullable<LoadTestOptions["onProgress"]>>[0];

/** How far a load test is. */
export function createLoadLine(
  stream: ProgressStream,
): Omit<TerminalLine, "update"> & { readonly update: (progress: LoadProgress) => void } {
  const line = createTerminalLine(stream);
  const startedMs = performance.now();
  return {
    ...line,
    update({ sent, ended, failed, total }) {
      const share = ended / total;
      const elapsedMs = performance.now() - startedMs;
      const leftSeconds = share > 0 ? (elapsedMs / share - elapsedMs) / 1000 : 0;
      const text = `${ended}/${total}  in flight ${sent - ended}  failed ${failed}  ${leftSeconds.toFixed(0)} s left`;
      line.update({ share, text });
    },
  };
}
