/** A prompt of `length` tokens that shares no prefix with those of other salts. */
export function saltedPrompt(length: number, salt: number): Int32Array {
  return Int32Array.from({ length }, (_, index) => 300 + ((index * 7919 + salt * 104_729) % 1500));
}

/** Reads a stream to its end. */
export async function readToEnd(events: AsyncIterable<unknown>): Promise<void> {
  for await (const event of events) void event;
}
