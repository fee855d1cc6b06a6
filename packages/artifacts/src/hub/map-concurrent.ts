/**
 * Maps with at most `limit` calls under way, results in order. After the first failure no new call starts, `onFailure` may
 * abort those in progress, and the failure is thrown once they have ended.
 */
export async function mapConcurrent<T, R>(
  items: readonly T[],
  limit: number,
  map: (item: T) => Promise<R>,
  onFailure?: () => void,
): Promise<R[]> {
  const results: R[] = [];
  const failures: unknown[] = [];
  const queue = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of queue) {
      if (failures.length > 0) return;
      try {
        results[index] = await map(item);
      } catch (error) {
        if (failures.push(error) === 1) onFailure?.();
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, items.length)) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}
