import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol";
import type { Logger } from "pino";
import type { Service } from "../service.js";

export interface ModelPoolOptions {
  readonly services: readonly Service[];
  /** Models in memory at a time. */
  readonly maxLoaded: number;
  /** Bytes of their weights and KV caches together; 0 is no limit. */
  readonly maxBytes: number;
  /** How long a request waits for its model. */
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** A request that waits for its model. */
interface Waiter {
  readonly service: Service;
  readonly admit: () => void;
  readonly fail: (error: OctavoError) => void;
}

/** How often models are looked for that sleep while work waits in their engines, as background responses leave it. */
const lookMs = 1000;
/** Requests that wait for a model at a time; more would be refused by its queue, too. */
const mostWaiters = 4096;

/**
 * Keeps as many of a server's models awake as memory allows. Requests take their turn in the order of arrival, whatever model they
 * name: one that needs a sleeping model waits until another is idle, which then sleeps, the least recently used first. Who comes later
 * waits behind it, so that a busy model cannot keep another from waking.
 */
export class ModelPool implements Disposable {
  readonly #options: ModelPoolOptions;
  readonly #uses = new Map<Service, number>();
  /** Awake services, least recently used first. */
  readonly #awake: Set<Service>;
  readonly #waiters = new Set<Waiter>();
  readonly #timer: NodeJS.Timeout;
  #loading: Service | undefined;
  #isPumping = false;

  constructor(options: ModelPoolOptions) {
    this.#options = options;
    this.#awake = new Set(options.services.filter(isAwake));
    this.#timer = setInterval(() => this.#look(), lookMs).unref();
  }

  /** How a model is now. */
  stateOf(service: Service): "loaded" | "loading" | "unloaded" {
    if (service === this.#loading) return "loading";
    return isAwake(service) ? "loaded" : "unloaded";
  }

  /**
   * Resolves once the model is awake, and stays so until the returned function is called. Throws `queue_full`, `overloaded` after the
   * time limit, `request_cancelled`, or why the model cannot be loaded.
   */
  async use(service: Service, signal: AbortSignal): Promise<() => void> {
    if (this.#waiters.size >= mostWaiters)
      throw new OctavoError("queue_full", "too many requests wait for models");
    await this.#turn(service, signal);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#uses.set(service, (this.#uses.get(service) ?? 1) - 1);
      void this.#pump();
    };
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    const error = new OctavoError("shutting_down", "the server is shutting down");
    for (const waiter of this.#waiters) this.#leave(waiter, error);
  }

  async #turn(service: Service, signal: AbortSignal): Promise<void> {
    const { timeoutMs } = this.#options;
    let end = (): void => undefined;
    try {
      await new Promise<void>((admit, fail) => {
        const waiter: Waiter = { service, admit, fail };
        const timer = setTimeout(() => this.#leave(waiter, tooLate(service, timeoutMs)), timeoutMs);
        this.#waiters.add(waiter);
        const forget = whenAborted(signal, () => this.#leave(waiter, OctavoError.from(signal.reason)));
        end = () => {
          clearTimeout(timer);
          forget();
        };
        void this.#pump();
      });
    } finally {
      end();
    }
  }

  #leave(waiter: Waiter, error: OctavoError): void {
    if (this.#waiters.delete(waiter)) waiter.fail(error);
  }

  #look(): void {
    const waiting = this.#options.services.find(
      (service) => !isAwake(service) && service.model.engine.stats.waiting > 0 && !this.#isWaitedFor(service),
    );
    if (waiting === undefined) void this.#pump();
    else
      void this.use(waiting, AbortSignal.timeout(this.#options.timeoutMs)).then(
        (release) => release(),
        () => undefined,
      );
  }

  #isWaitedFor(service: Service): boolean {
    return [...this.#waiters].some((waiter) => waiter.service === service);
  }

  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      for (let [first] = this.#waiters; first !== undefined; [first] = this.#waiters) {
        if (isAwake(first.service)) this.#admit(first);
        else if (!(await this.#load(first.service))) return;
      }
    } finally {
      this.#isPumping = false;
    }
  }

  #admit(waiter: Waiter): void {
    const { service } = waiter;
    this.#waiters.delete(waiter);
    this.#uses.set(service, (this.#uses.get(service) ?? 0) + 1);
    this.#awake.delete(service);
    this.#awake.add(service);
    waiter.admit();
  }

  /** Wakes a model, and admits all who wait for it; false if that has to wait for another to be idle. */
  async #load(service: Service): Promise<boolean> {
    this.#loading = service;
    try {
      while (!this.#hasRoomFor(service)) {
        const idle = [...this.#awake].find((other) => this.#isIdle(other));
        if (idle === undefined) return false;
        this.#awake.delete(idle);
        await idle.model.sleepMode?.sleep();
        this.#options.log.info({ model: idle.modelNames[0] }, "model unloaded");
      }
      await service.model.sleepMode?.wakeUp();
      this.#awake.add(service);
      this.#options.log.info({ model: service.modelNames[0] }, "model loaded");
      for (const waiter of this.#waiters) if (waiter.service === service) this.#admit(waiter);
    } catch (thrown) {
      const error = OctavoError.from(thrown);
      this.#options.log.error(
        { model: service.modelNames[0], code: error.code },
        "a model could not be loaded",
      );
      for (const waiter of this.#waiters) if (waiter.service === service) this.#leave(waiter, error);
    } finally {
      this.#loading = undefined;
    }
    return true;
  }

  #hasRoomFor(service: Service): boolean {
    const { maxLoaded, maxBytes } = this.#options;
    const bytes = [...this.#awake, service].reduce(
      (sum, { model }) => sum + (model.sleepMode?.byteLength ?? 0),
      0,
    );
    // One alone always may.
    if (this.#awake.size === 0) return true;
    return this.#awake.size < maxLoaded && (maxBytes === 0 || bytes <= maxBytes);
  }

  #isIdle(service: Service): boolean {
    const { running, waiting } = service.model.engine.stats;
    return (this.#uses.get(service) ?? 0) === 0 && running + waiting === 0;
  }
}

function isAwake({ model }: Service): boolean {
  return model.sleepMode?.level === undefined;
}

function tooLate({ modelNames }: Service, timeoutMs: number): OctavoError {
  const message = `the model ${JSON.stringify(modelNames[0])} could not be loaded within ${timeoutMs / 1000} s: others are in use`;
  return new OctavoError("overloaded", message, { retryAfterSeconds: 1 });
}
