/** Runs work under a signal that SIGINT or SIGTERM aborts once; the same signal again ends the process as it always does. */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  onInterrupt?: () => void,
): Promise<T> {
  const stopping = new AbortController();
  const interrupt = (): void => {
    onInterrupt?.();
    stopping.abort();
  };
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    return await work(stopping.signal);
  } finally {
    process.removeListener("SIGINT", interrupt).removeListener("SIGTERM", interrupt);
  }
}
