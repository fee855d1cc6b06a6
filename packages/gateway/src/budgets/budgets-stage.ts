import { type JsonFields, OctavoError } from "@octavo/protocol";
import type { z } from "zod";
import type { Exchange } from "../exchange/exchange.js";
import type { AdminRoute, Stage, StageContext, StageDefinition, StageHooks } from "../exchange/stage.js";
import { subjectsOf } from "../limits/scope.js";
import { type BudgetConfig, budgetsSchema } from "./budget-config.js";
import { type Period, periodAt } from "./budget-period.js";
import { Purse } from "./purse.js";
import { actualCost, ceilingOf, shownAmount, worstCase } from "./worst-case.js";

/** How long a purse's level is taken for what it was. */
const levelAgeMs = 1000;

interface Account {
  readonly budget: BudgetConfig;
  readonly subject: string;
  readonly purse: Purse;
  /** Part of the ceiling that is taken, as last read, and when. */
  level: number;
  readAtMs: number;
  hasWarned: boolean;
}

interface Reservation {
  readonly account: Account;
  /** For one attempt, and for all that were allowed. */
  readonly once: number;
  amount: number;
}

class BudgetsStage implements Stage {
  readonly #budgets: readonly BudgetConfig[];
  readonly #context: StageContext;
  readonly #accounts = new Map<string, Account>();
  readonly #periods = new Map<BudgetConfig, Period>();
  readonly adminRoutes: readonly AdminRoute[] = [
    { method: "GET", path: "budgets", handle: () => this.#report() },
  ];

  constructor(budgets: readonly BudgetConfig[], context: StageContext) {
    this.#budgets = budgets;
    this.#context = context;
  }

  async onRequest(exchange: Exchange): Promise<StageHooks | undefined> {
    const reservations: Reservation[] = [];
    try {
      for (const budget of this.#budgets)
        for (const subject of subjectsOf(budget, exchange)) {
          const account = this.#account(budget, subject);
          const amount = worstCase(budget, exchange);
          if (amount === 0) continue;
          await this.#slowDown(account);
          if (!(await account.purse.set(amount))) throw exceeded(account, amount);
          reservations.push({ account, once: amount, amount });
        }
    } catch (error) {
      for (const { account, amount } of reservations) await account.purse.settle(amount, 0);
      throw error;
    }
    if (reservations.length === 0) return undefined;
    return {
      onExtraAttempt: () => this.#reserveAgain(reservations),
      settle: async () => {
        for (const reservation of reservations) await this.#settle(reservation, exchange);
      },
    };
  }

  /** Another attempt may cost as much as the first did at most: it is made only where all budgets have that too. */
  async #reserveAgain(reservations: readonly Reservation[]): Promise<boolean> {
    const set: Reservation[] = [];
    for (const reservation of reservations) {
      const { account, once } = reservation;
      if (await account.purse.set(once).catch(() => false)) {
        set.push(reservation);
        continue;
      }
      for (const before of set) await before.account.purse.settle(before.once, 0);
      return false;
    }
    for (const reservation of set) reservation.amount += reservation.once;
    return true;
  }

  async #settle({ account, amount }: Reservation, { ledger, id }: Exchange): Promise<void> {
    const excess = await account.purse.settle(amount, actualCost(account.budget, ledger)).catch(() => 0);
    if (excess === 0) return;
    this.#context.log("error", "a call cost more than it could at most", {
      requestId: id,
      budget: account.budget.name,
      excess: shownAmount(account.budget, excess),
    });
  }

  #account(budget: BudgetConfig, subject: string): Account {
    const now = this.#context.nowMs();
    const { id, startsAtMs, endsAtMs } = this.#period(budget, now);
    const key = `${budget.name}:${subject}:${id}`;
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    this.#dropEnded(now);
    const window = { key: `budget:${key}`, limit: ceilingOf(budget), startsAtMs, endsAtMs };
    const purse = new Purse(this.#context.store, window);
    const account = { budget, subject, purse, level: 0, readAtMs: -Infinity, hasWarned: false };
    this.#accounts.set(key, account);
    return account;
  }

  /** The calendar is asked once a period. */
  #period(budget: BudgetConfig, now: number): Period {
    const known = this.#periods.get(budget);
    if (known !== undefined && now >= known.startsAtMs && now < known.endsAtMs) return known;
    const period = periodAt(budget.period, now);
    this.#periods.set(budget, period);
    return period;
  }

  #dropEnded(now: number): void {
    for (const [key, { purse }] of this.#accounts)
      if (purse.window.endsAtMs <= now && purse.reserved === 0) this.#accounts.delete(key);
  }

  /** Soft: a line in the log. Medium: so many calls a minute, and no more. */
  async #slowDown(account: Account): Promise<void> {
    const { budget, subject, purse } = account;
    const level = await this.#level(account);
    if (level >= budget.soft && !account.hasWarned) {
      account.hasWarned = true;
      this.#context.log("warn", "a budget is nearly spent", {
        budget: budget.name,
        subject,
        part: Math.round(level * 1000) / 1000,
        ceiling: shownAmount(budget, purse.window.limit),
      });
    }
    if (budget.medium === undefined || level < budget.medium) return;
    const perSecond = budget.medium_requests_per_minute / 60;
    const bucket = { key: purse.window.key, perSecond, burst: Math.max(1, Math.ceil(perSecond)) };
    const { granted, waitMs } = await this.#context.store.takeRate(bucket, 1, 1);
    if (granted > 0) return;
    throw new OctavoError(
      "rate_limit_exceeded",
      `${Math.floor(level * 100)} % of ${budget.name} is spent; until its period ends, ${budget.medium_requests_per_minute} calls per minute go through.`,
      { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) },
    );
  }

  async #level(account: Account): Promise<number> {
    const { purse } = account;
    const now = this.#context.nowMs();
    if (now - account.readAtMs >= levelAgeMs || !this.#context.store.isShared) {
      account.readAtMs = now;
      account.level = (await this.#context.store.taken(purse.window)) / purse.window.limit;
    }
    return account.level;
  }

  async #report(): Promise<JsonFields> {
    const budgets = [];
    for (const { budget, subject, purse } of this.#accounts.values()) {
      const taken = await this.#context.store.taken(purse.window);
      budgets.push({
        budget: budget.name,
        subject,
        period: budget.period,
        ends: new Date(purse.window.endsAtMs).toISOString(),
        ceiling: purse.window.limit,
        taken,
        part: taken / purse.window.limit,
        here: { spent: purse.spent, reserved: purse.reserved, available: purse.available },
      });
    }
    return { units: { dollars: "nanodollars", gpu_seconds: "microseconds" }, budgets };
  }

  async close(): Promise<void> {
    for (const { purse } of this.#accounts.values()) await purse.close();
  }
}

function exceeded({ budget, purse }: Account, amount: number): OctavoError {
  const { limit, endsAtMs } = purse.window;
  return new OctavoError(
    "budget_exceeded",
    `The call may cost ${shownAmount(budget, amount)}, and ${budget.name} of ${shownAmount(budget, limit)} has less left until ${new Date(endsAtMs).toISOString()}.`,
  );
}

export const budgetsStage: StageDefinition<typeof budgetsSchema> = {
  name: "budgets",
  schema: budgetsSchema,
  create: (budgets: z.output<typeof budgetsSchema>, context) => new BudgetsStage(budgets, context),
};
