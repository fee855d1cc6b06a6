import type { DownloadProgress } from "./download-progress.js";

/** What the bar needs of a stream; `process.stderr` fits. */
export interface ProgressStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Whether escape sequences do something there; Emacs' shell and many logs of builds are terminals that call themselves dumb. */
export function isCapable(stream: { readonly isTTY?: boolean | undefined }): boolean {
  return stream.isTTY === true && process.env["TERM"] !== "dumb";
}

const plainStepPercent = 10;

/**
 * Shows download progress: one line redrawn in place on a terminal, otherwise a plain line at every tenth of the way.
 * Silent when everything was there already.
 */
export function createProgressBar(
  stream: ProgressStream = process.stderr,
): (progress: DownloadProgress) => void {
  let nextPlain = 0;
  let drawn = false;
  return (progress) => {
    const isCached = progress.receivedBytes === progress.presentBytes && !drawn;
    // Files are found one by one: until a byte was fetched, what is there says nothing of how much is missing.
    if (
      isCached &&
      (progress.presentBytes > 0 || progress.done || progress.receivedBytes >= progress.totalBytes)
    )
      return;
    if (isCapable(stream)) {
      drawn = true;
      stream.write(`\r${terminalLine(progress, stream.columns ?? 80)}\u001B[K${progress.done ? "\n" : ""}`);
      return;
    }
    const percent = percentOf(progress);
    if (!progress.done && percent < nextPlain) return;
    drawn = true;
    nextPlain = (Math.floor(percent / plainStepPercent) + 1) * plainStepPercent;
    stream.write(`${describe(progress)}\n`);
  };
}

export function formatDecimalBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

/** Rounded down, so that 100 means done. */
function percentOf(progress: DownloadProgress): number {
  if (progress.totalBytes === 0) return 100;
  return Math.min(100, Math.floor((progress.receivedBytes * 100) / progress.totalBytes));
}

function describe(progress: DownloadProgress): string {
  const percent = `${percentOf(progress)} %`;
  const bytes = `${formatDecimalBytes(progress.receivedBytes)} of ${formatDecimalBytes(progress.totalBytes)}`;
  const files = `${progress.finishedFiles} of ${progress.numFiles} files`;
  return `${progress.name}: ${percent}, ${bytes}, ${files}${pace(progress)}`;
}

/** The bar takes what the figures leave of the line; the last column stays free so that terminals do not wrap. */
function terminalLine(progress: DownloadProgress, columns: number): string {
  const figures = describe(progress);
  const room = Math.min(30, columns - figures.length - 4);
  if (room < 5) return figures.slice(0, Math.max(1, columns - 1));
  const filled = Math.round((percentOf(progress) / 100) * room);
  return `${figures} [${"#".repeat(filled)}${"-".repeat(room - filled)}]`;
}

function pace(progress: DownloadProgress): string {
  const seconds = progress.elapsedMs / 1000;
  const fetched = progress.receivedBytes - progress.presentBytes;
  if (seconds < 0.5 || fetched <= 0) return "";
  const rate = fetched / seconds;
  const left = Math.max(0, progress.totalBytes - progress.receivedBytes) / rate;
  return `, ${formatDecimalBytes(rate)}/s${progress.done ? "" : `, ${formatDuration(left)} left`}`;
}

function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
