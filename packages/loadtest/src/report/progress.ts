import type { Progress } from "../load/run.js";

/** A progress line on a terminal, redrawn at most ten times a second; one line per tenth of the run elsewhere. */
export function createProgressLine(stream: { isTTY?: boolean; write(text: string): unknown }): {
  update(progress: Progress): void;
  end(): void;
} {
  const began = performance.now();
  let drawnAt = 0;
  let lastTenth = 0;
  return {
    update(progress) {
      const now = performance.now();
      const share = progress.ended / progress.total;
      if (!stream.isTTY) {
        const tenth = Math.floor(share * 10);
        if (tenth > lastTenth)
          stream.write(`${progress.ended}/${progress.total} requests ended, ${progress.failed} failed\n`);
        lastTenth = Math.max(lastTenth, tenth);
        return;
      }
      if (now - drawnAt < 100 && progress.ended < progress.total) return;
      drawnAt = now;
      const width = 30;
      const filled = Math.round(share * width);
      const left = share > 0 ? ((now - began) / share - (now - began)) / 1000 : 0;
      stream.write(
        `\r\u001b[2K[${"=".repeat(filled)}${" ".repeat(width - filled)}] ${progress.ended}/${progress.total}` +
          `  in flight ${progress.sent - progress.ended}  failed ${progress.failed}  ${left.toFixed(0)} s left`,
      );
    },
    end() {
      if (stream.isTTY) stream.write("\n");
    },
  };
}
