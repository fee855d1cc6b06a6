/** Runs work with a signal that SIGINT or SIGTERM aborts; a second one ends the process. */
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
