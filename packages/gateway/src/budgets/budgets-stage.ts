import { type JsonFields, OctavoError } from "@octavo/protocol";
import type { z } from "zod";
import type { Exchange } from "../exchange/exchange.js";
import type { MaybePromise } from "../exchange/maybe-promise.js";
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
          const slowing = this.#slowDown(account);
          if (slowing !== undefined) await slowing;
          const setting = account.purse.set(amount);
          if (!(setting instanceof Promise ? await setting : setting)) throw exceeded(account, amount);
          reservations.push({ account, once: amount, amount });
        }
    } catch (error) {
      for (const { account, amount } of reservations) await account.purse.settle(amount, 0);
      throw error;
    }
    if (reservations.length === 0) return undefined;
    return {
      onExtraAttempt: () => this.#reserveAgain(reservations),
      settle: () => {
        const [only] = reservations;
        return reservations.length === 1 && only !== undefined
          ? this.#settle(only, exchange)
          : this.#settleAll(reservations, exchange);
      },
    };
  }

  /** Another attempt may cost as much as the first did at most: it is made only where all budgets have that too. */
  async #reserveAgain(reservations: readonly Reservation[]): Promise<boolean> {
    const set: Reservation[] = [];
    for (const reservation of reservations) {
      const { account, once } = reservation;
      // a store that cannot be reached allows nothing
      if (await (async () => account.purse.set(once))().catch(() => false)) {
        set.push(reservation);
        continue;
      }
      for (const before of set) await before.account.purse.settle(before.once, 0);
      return false;
    }
    for (const reservation of set) reservation.amount += reservation.once;
    return true;
  }

  async #settleAll(reservations: readonly Reservation[], exchange: Exchange): Promise<void> {
    for (const reservation of reservations) await this.#settle(reservation, exchange);
  }

  #settle(reservation: Reservation, exchange: Exchange): MaybePromise<void> {
    const { account, amount } = reservation;
    const settling = account.purse.settle(amount, actualCost(account.budget, exchange.ledger));
    if (!(settling instanceof Promise)) return;
    // what could not be taken was not there, or the store cannot be reached
    return settling.catch(() => 0).then((excess) => this.#noteExcess(reservation, exchange, excess));
  }

  #noteExcess({ account }: Reservation, { id }: Exchange, excess: number): void {
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
  #slowDown(account: Account): Promise<void> | undefined {
    const { budget } = account;
    const level = this.#level(account);
    if (level instanceof Promise) return level.then((known) => this.#slowDownAt(account, known));
    const isLow = level < budget.soft && (budget.medium === undefined || level < budget.medium);
    return isLow ? undefined : this.#slowDownAt(account, level);
  }

  async #slowDownAt(account: Account, level: number): Promise<void> {
    const { budget, subject, purse } = account;
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
    const refused = await this.#context.store.takeRates([{ bucket, amount: 1 }]);
    if (refused === undefined) return;
    throw new OctavoError(
      "rate_limit_exceeded",
      `${Math.floor(level * 100)} % of ${budget.name} is spent; until its period ends, ${budget.medium_requests_per_minute} calls per minute go through.`,
      { retryAfterSeconds: Math.max(1, Math.ceil(refused.waitMs / 1000)) },
    );
  }

  #level(account: Account): MaybePromise<number> {
    const { store } = this.#context;
    const now = this.#context.nowMs();
    if (store.isShared && now - account.readAtMs < levelAgeMs) return account.level;
    account.readAtMs = now;
    const note = (taken: number): number => (account.level = taken / account.purse.window.limit);
    const taken = store.taken(account.purse.window);
    return taken instanceof Promise ? taken.then(note) : note(taken);
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
