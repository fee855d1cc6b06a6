import type { EngineObserver } from "../api.js";

type Events = { [Key in keyof Required<EngineObserver>]: Parameters<Required<EngineObserver>[Key]> };

/** The engine's observers. One that throws breaks its contract, not the engine: it is removed with a process warning. */
export class ObserverList {
  readonly #observers = new Set<EngineObserver>();

  add(observer: EngineObserver): Disposable {
    this.#observers.add(observer);
    return { [Symbol.dispose]: () => void this.#observers.delete(observer) };
  }

  notify<Key extends keyof Events>(event: Key, ...parameters: Events[Key]): void {
    for (const observer of this.#observers) {
      try {
        const listener = observer[event] as ((...parameters: Events[Key]) => void) | undefined;
        listener?.apply(observer, parameters);
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
