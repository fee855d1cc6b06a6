import { createHash } from "node:crypto";
import { OctavoError } from "@octavo/protocol";
import type { StageContext } from "../exchange/stage.js";
import type { SharedStore } from "../store/shared-store.js";
import { purgeRollout } from "./purge.js";
import type { RolloutConfig } from "./rollout-config.js";
import {
  type RolloutDecision,
  type RolloutEvent,
  type RolloutState,
  startRollout,
  stepRollout,
} from "./rollout-machine.js";

/** How often instances exchange what they observed. A decision is known everywhere within two of these. */
const exchangeEveryMs = 500;
/** Decisions that are kept; those before are in the log. */
const mostDecisions = 200;
const mostTries = 20;

interface StoredRollout {
  /** Digest of the settings that the evidence belongs to. */
  readonly settings: string;
  readonly state: RolloutState;
  readonly journal: readonly RolloutDecision[];
}

type ServiceContext = Pick<StageContext, "nowMs" | "log"> & { readonly store: SharedStore };

/**
 * One rollout as this instance knows it. Events are applied here at once, and to what the store has in turns with other
 * instances. Where the store cannot be reached, evidence can still roll back, and nothing is promoted.
 */
export class RolloutService {
  readonly config: RolloutConfig;
  readonly #context: ServiceContext;
  readonly #key: string;
  #known: StoredRollout;
  /** Observed here and not in the store yet. */
  #pending: RolloutEvent[] = [];
  /** With what was observed here and the store has not seen. */
  #local: RolloutState;
  readonly #settings: string;
  #isLatest = true;
  #exchanging: Promise<void> | undefined;
  readonly #timer: NodeJS.Timeout;

  private constructor(config: RolloutConfig, context: ServiceContext) {
    this.config = config;
    this.#context = context;
    this.#key = `rollout:${config.name}`;
    this.#settings = createHash("sha256").update(JSON.stringify(config)).digest("hex").slice(0, 16);
    this.#local = startRollout(config, context.nowMs());
    this.#known = { settings: this.#settings, state: this.#local, journal: [] };
    this.#timer = setInterval(() => void this.exchange(), exchangeEveryMs).unref();
  }

  /**
   * Begins the rollout, or goes on with it where it was. Throws `invalid_option` where it was begun with other settings: what
   * was observed then says nothing of them.
   */
  static async open(config: RolloutConfig, context: ServiceContext): Promise<RolloutService> {
    const service = new RolloutService(config, context);
    try {
      await service.#exchangeNow();
    } catch (thrown) {
      clearInterval(service.#timer);
      throw thrown;
    }
    return service;
  }

  get state(): RolloutState {
    const { state } = this.#known;
    return this.#local.status === "rolled_back" ? this.#local : state;
  }

  get journal(): readonly RolloutDecision[] {
    return this.#known.journal;
  }

  /** Whether the state is the one that all instances have. */
  get isLatest(): boolean {
    return this.#isLatest;
  }

  /** Events of pairs. What happens here does not wait for others where it ends the canary. */
  observe(event: RolloutEvent): void {
    this.#pending.push(event);
    this.#local = stepRollout(this.config, this.#local, event).state;
    if (this.#local.status === "rolled_back" || !this.#context.store.isShared) void this.exchange();
  }

  /** A person's command; resolves once it holds. Throws `store_unavailable` where others cannot know of it. */
  async command(event: Extract<RolloutEvent, { type: "command" }>): Promise<RolloutDecision | undefined> {
    const before = this.#known.journal.at(-1);
    this.observe(event);
    while (this.#exchanging !== undefined) await this.#exchanging;
    await this.#exchangeNow();
    const last = this.#known.journal.at(-1);
    return last === before ? undefined : last;
  }

  exchange(): Promise<void> {
    this.#exchanging ??= this.#exchangeNow()
      .catch(() => {
        this.#isLatest = false;
      })
      .finally(() => {
        this.#exchanging = undefined;
      });
    return this.#exchanging;
  }

  async #exchangeNow(): Promise<void> {
    const { store, nowMs } = this.#context;
    for (let tries = 0; tries < mostTries; tries++) {
      const stored = await store.readDocument(this.#key);
      const before = this.#read(stored?.value);
      const events = this.#pending;
      const made: RolloutDecision[] = [];
      let { state } = before;
      for (const event of [...events, { type: "tick", atMs: nowMs() } as const]) {
        const step = stepRollout(this.config, state, event);
        ({ state } = step);
        if (step.decision !== undefined) made.push(step.decision);
      }
      const journal = [...before.journal, ...made].slice(-mostDecisions);
      const after: StoredRollout = { settings: this.#settings, state, journal };
      // first, so that no instance serves what the canary wrote once it is known to be rolled back
      if (made.some(({ decision }) => decision === "rollback"))
        await purgeRollout(store, this.config.name, nowMs());
      const isChanged = stored === undefined || events.length + made.length > 0;
      if (isChanged && !(await store.writeDocument(this.#key, JSON.stringify(after), stored?.version ?? 0)))
        continue;
      this.#known = after;
      this.#pending = this.#pending.slice(events.length);
      this.#local = state;
      for (const event of this.#pending) this.#local = stepRollout(this.config, this.#local, event).state;
      this.#isLatest = true;
      for (const decision of made) this.#announce(decision);
      return;
    }
    this.#isLatest = false;
  }

  #announce(decision: RolloutDecision): void {
    const { rollout, decision: what, by, reason, fromStage, toStage, pairs } = decision;
    this.#context.log("info", "rollout_decided", {
      rollout,
      decision: what,
      by,
      reason,
      fromStage,
      toStage,
      pairs,
    });
  }

  #read(value: string | undefined): StoredRollout {
    if (value === undefined)
      return {
        settings: this.#settings,
        state: startRollout(this.config, this.#context.nowMs()),
        journal: [],
      };
    const stored = JSON.parse(value) as StoredRollout;
    if (stored.settings === this.#settings) return stored;
    throw new OctavoError(
      "invalid_option",
      `rollouts: ${this.config.name} was begun with other settings, and its evidence is theirs; give it a new name.`,
      { param: "rollouts" },
    );
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.exchange();
  }
}
