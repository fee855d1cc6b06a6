import type { EngineObserver } from "../api.js";

type Events = { [Key in keyof Required<EngineObserver>]: Parameters<Required<EngineObserver>[Key]> };
type SecondOf<Key extends keyof Events> = Events[Key] extends [unknown, infer Second] ? [second: Second] : [];

/** The engine's observers. One that throws breaks its contract, not the engine: it is removed with a process warning. */
export class ObserverList {
  readonly #observers = new Set<EngineObserver>();

  add(observer: EngineObserver): Disposable {
    this.#observers.add(observer);
    return { [Symbol.dispose]: () => void this.#observers.delete(observer) };
  }

  /** Not variadic: it is called for every token, and a rest parameter would be an array each time. */
  notify<Key extends keyof Events>(event: Key, first: Events[Key][0], ...second: SecondOf<Key>): void;
  notify(event: keyof Events, first: unknown, second?: unknown): void {
    for (const observer of this.#observers) {
      try {
        const listener = observer[event] as ((first: unknown, second: unknown) => void) | undefined;
        listener?.call(observer, first, second);
      } catch (thrown) {
        this.#observers.delete(observer);
        process.emitWarning(
          `an engine observer threw in ${event} and was removed: ${String(thrown)}`,
          "OctavoWarning",
        );
      }
    }
  }
}
