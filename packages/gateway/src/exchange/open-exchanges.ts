import type { LiveExchange } from "./live-exchange.js";

/**
 * Exchanges under way, in no order. A list and not a set: a set leaves its old table behind whenever it grows, and each table
 * keeps the next one and all exchanges in it alive until the next full collection.
 */
export class OpenExchanges {
  readonly #list: LiveExchange[] = [];

  get all(): readonly LiveExchange[] {
    return this.#list;
  }

  add(exchange: LiveExchange): void {
    exchange.place = this.#list.length;
    this.#list.push(exchange);
  }

  /** The last one takes its place. */
  remove(exchange: LiveExchange): void {
    const last = this.#list.pop();
    if (last === undefined || last === exchange) return;
    last.place = exchange.place;
    this.#list[exchange.place] = last;
  }
}
