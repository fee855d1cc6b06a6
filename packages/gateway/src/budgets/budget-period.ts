export const budgetPeriods = ["hour", "day", "week", "month", "forever"] as const;

export type BudgetPeriod = (typeof budgetPeriods)[number];

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** A Monday, at which weeks begin. */
const firstMondayMs = 4 * dayMs;

export interface Period {
  /** Tells it from other periods of its kind, such as 2026-11. */
  readonly id: string;
  readonly startsAtMs: number;
  readonly endsAtMs: number;
}

/** The calendar period in UTC that a moment (ms since 1970) falls into. */
export function periodAt(kind: BudgetPeriod, atMs: number): Period {
  const date = new Date(atMs);
  const iso = date.toISOString();
  switch (kind) {
    case "hour": {
      const startsAtMs = Math.floor(atMs / hourMs) * hourMs;
      return { id: iso.slice(0, 13), startsAtMs, endsAtMs: startsAtMs + hourMs };
    }
    case "day": {
      const startsAtMs = Math.floor(atMs / dayMs) * dayMs;
      return { id: iso.slice(0, 10), startsAtMs, endsAtMs: startsAtMs + dayMs };
    }
    case "week": {
      const startsAtMs = Math.floor((atMs - firstMondayMs) / (7 * dayMs)) * 7 * dayMs + firstMondayMs;
      return {
        id: `week-of-${new Date(startsAtMs).toISOString().slice(0, 10)}`,
        startsAtMs,
        endsAtMs: startsAtMs + 7 * dayMs,
      };
    }
    case "month": {
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
      return {
        id: iso.slice(0, 7),
        startsAtMs: Date.UTC(year, month, 1),
        endsAtMs: Date.UTC(year, month + 1, 1),
      };
    }
    case "forever":
      return { id: "forever", startsAtMs: 0, endsAtMs: Date.UTC(9999, 0, 1) };
  }
}
