import { OctavoError } from "@octavo/protocol";

/** What a search has used. */
export interface Spending {
  /** Requests to the target and to the teacher. */
  readonly calls: number;
  readonly tokens: number;
  readonly dollars: number;
  /** Time on the engine's backend where the server reports it (its serving record), else from sending to the last token. */
  readonly gpuSeconds: number;
}

export const budgetUnits = ["calls", "tokens", "dollars", "gpuSeconds"] as const;
/** What a search may spend. */
export type BudgetLimits = Partial<Spending>;

export const nothingSpent: Spending = { calls: 0, tokens: 0, dollars: 0, gpuSeconds: 0 };

/** Ends a search wherever it is; what was found by then counts. */
export class BudgetEnded extends OctavoError {
  constructor(message: string) {
    super("budget_exceeded", message);
  }
}

/** One account for everything that a search asks. */
export class Budget {
  readonly limits: BudgetLimits;
  #spent: Spending = nothingSpent;

  /** @throws OctavoError `invalid_option` without a limit, or for one that is not above 0 */
  constructor(limits: BudgetLimits) {
    const given = budgetUnits.filter((unit) => limits[unit] !== undefined);
    if (given.length === 0)
      throw new OctavoError(
        "invalid_option",
        "budget: say at least one of calls, tokens, dollars, gpu_seconds",
        {
          param: "budget",
        },
      );
    for (const unit of given)
      if (!((limits[unit] ?? 0) > 0))
        throw new OctavoError("invalid_option", `budget: ${unit} is ${limits[unit]}; expected more than 0`, {
          param: "budget",
        });
    this.limits = limits;
  }

  get spent(): Spending {
    return this.#spent;
  }

  charge(cost: Spending): void {
    this.#spent = added(this.#spent, cost);
  }

  /** Why nothing more may be asked; undefined where something may. */
  refusal(): string | undefined {
    const unit = budgetUnits.find(
      (one) => this.#spent[one] >= (this.limits[one] ?? Number.POSITIVE_INFINITY),
    );
    return unit === undefined
      ? undefined
      : `the budget of ${this.limits[unit]} ${unitNames[unit]} is used up`;
  }

  /** Share of the limit that is nearest to being reached. */
  get share(): number {
    return Math.max(
      ...budgetUnits.map((unit) => this.#spent[unit] / (this.limits[unit] ?? Number.POSITIVE_INFINITY)),
    );
  }

  get callsLeft(): number {
    return Math.max(0, (this.limits.calls ?? Number.POSITIVE_INFINITY) - this.#spent.calls);
  }
}

const unitNames: Readonly<Record<keyof Spending, string>> = {
  calls: "calls",
  tokens: "tokens",
  dollars: "dollars",
  gpuSeconds: "GPU-seconds",
};

export function added(one: Spending, other: Spending): Spending {
  return {
    calls: one.calls + other.calls,
    tokens: one.tokens + other.tokens,
    dollars: one.dollars + other.dollars,
    gpuSeconds: one.gpuSeconds + other.gpuSeconds,
  };
}
