/** A bar of `width` characters between brackets, filled up to a share from 0 to 1. */
export function progressBar(share: number, width: number): string {
  const filled = Math.round(Math.min(1, share) * width);
  return `[${"=".repeat(filled)}${" ".repeat(width - filled)}]`;
}

/** How long something still takes. */
export function timeLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}
