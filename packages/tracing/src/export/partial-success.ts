/** How many items of what it took a collector says that it rejected: a field of OTLP's `partial_success`. */
export function rejectedItems(
  text: string,
  field: "rejectedSpans" | "rejectedDataPoints" | "rejectedLogRecords",
): number {
  try {
    const answer: unknown = JSON.parse(text);
    if (typeof answer !== "object" || answer === null || !("partialSuccess" in answer)) return 0;
    const { partialSuccess } = answer;
    if (typeof partialSuccess !== "object" || partialSuccess === null) return 0;
    const count = Number(new Map<string, unknown>(Object.entries(partialSuccess)).get(field) ?? 0);
    return Number.isFinite(count) && count > 0 ? count : 0;
  } catch {
    return 0;
  }
}
