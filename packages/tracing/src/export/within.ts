/** Resolves when `work` is done, at the latest after `deadlineMs`; rejects where `work` does before. */
export async function within(deadlineMs: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, deadlineMs);
  });
  await Promise.race([work, deadline]);
  clearTimeout(timer);
}
