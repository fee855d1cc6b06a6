import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import type { Vacating } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { pauseModes, type PauseMode, type RunningEngine } from "../engine-options.js";
import type { LoadedModel } from "../model/load-model.js";
import { FileStates } from "./file-states.js";

/** What sleeping models give back, in vLLM's numbers: nothing, or weights and KV cache; at 2, files may change meanwhile. */
export const sleepLevels = [0, 1, 2] as const;
/** How much of a model's memory is freed while it sleeps; see `SleepOptions.level`. */
export type SleepLevel = (typeof sleepLevels)[number];

/** Parts of a model that wake up, in vLLM's words. */
export const wakeTags = ["weights", "kv_cache"] as const;
/** A part of a sleeping model. */
export type WakeTag = (typeof wakeTags)[number];

/** How a model is put to sleep. */
export interface SleepOptions {
  /**
   * 0: no step runs, memory stays. 1 (the default): weights and KV cache are freed, and the same weights come back. 2: the checkpoint's
   * files are read anew when it wakes, so that changed weights of the same model are served.
   */
  readonly level?: SleepLevel | undefined;
  /** What becomes of requests, see `PauseMode`; default `abort`. */
  readonly mode?: PauseMode | undefined;
}

/** Weights that sleep, and where they came from. */
export interface SleepingWeights {
  readonly loaded: LoadedModel;
  checkpoint: Checkpoint;
  readonly reopen: () => Promise<Checkpoint>;
}

/** The sleep of a loaded model. Calls wait for those before them. */
export class ModelSleep {
  readonly #engine: RunningEngine;
  readonly #vacating: Vacating;
  readonly #weights: readonly SleepingWeights[];
  #level: SleepLevel | undefined;
  /** What must come back before steps run again. */
  readonly #missing = new Set<WakeTag>();
  /** Of the files, when their weights were freed. */
  #states = new FileStates([]);
  #turn: Promise<void> = Promise.resolve();

  constructor(engine: RunningEngine, vacating: Vacating, weights: readonly SleepingWeights[]) {
    this.#engine = engine;
    this.#vacating = vacating;
    this.#weights = weights;
  }

  /** Undefined when awake. */
  get level(): SleepLevel | undefined {
    return this.#level;
  }

  /** Of weights and KV cache, awake. */
  get byteLength(): number {
    return this.#weights.reduce((sum, { loaded }) => sum + loaded.weightBytes, this.#engine.cacheBytes);
  }

  /**
   * Resolves once the memory is free. A model that sleeps may sleep deeper; a shallower level changes nothing. Requests that come
   * meanwhile wait in the queue, under its bounds and their deadlines.
   */
  sleep({ level = 1, mode = "abort" }: SleepOptions = {}): Promise<void> {
    if (!sleepLevels.includes(level)) throw invalid("level", `must be ${sleepLevels.join(", ")}`);
    if (!pauseModes.includes(mode)) throw invalid("mode", `must be ${pauseModes.join(", ")}`);
    return this.#inTurn(async () => {
      if (this.#level !== undefined && level <= this.#level) return;
      await this.#engine.pause(mode);
      const isFree = (this.#level ?? 0) > 0;
      this.#level = level;
      if (level === 0 || isFree) return;
      for (const tag of wakeTags) this.#missing.add(tag);
      this.#engine.vacateCaches(this.#vacating);
      this.#states = new FileStates(this.#weights.map(({ checkpoint }) => checkpoint));
      for (const { loaded } of this.#weights) await loaded.vacate(this.#vacating);
    });
  }

  /**
   * Takes back what the tags name, by default everything; steps run again once nothing is missing. Again is harmless.
   * @throws OctavoError `artifact_invalid` where files changed, or at level 2 became another model, `out_of_memory`; the model sleeps on
   */
  wakeUp(tags: readonly WakeTag[] = wakeTags): Promise<void> {
    const unknown = tags.find((tag) => !wakeTags.includes(tag));
    if (unknown !== undefined) throw invalid("tags", `must be of ${wakeTags.join(", ")}`);
    return this.#inTurn(async () => {
      if (this.#level === undefined) return;
      if (tags.includes("weights") && this.#missing.has("weights")) {
        await this.#refillWeights();
        this.#missing.delete("weights");
      }
      if (tags.includes("kv_cache") && this.#missing.has("kv_cache")) {
        this.#engine.refillCaches(this.#vacating);
        this.#missing.delete("kv_cache");
      }
      if (this.#missing.size > 0) return;
      this.#level = undefined;
      this.#engine.resume();
    });
  }

  async #refillWeights(): Promise<void> {
    const opened: { readonly weights: SleepingWeights; readonly checkpoint: Checkpoint }[] = [];
    for (const weights of this.#weights)
      opened.push({ weights, checkpoint: await this.#checkpointOf(weights) });
    const done: LoadedModel[] = [];
    try {
      for (const { weights, checkpoint } of opened) {
        await weights.loaded.refill(this.#vacating, checkpoint.tensors);
        done.push(weights.loaded);
      }
    } catch (error) {
      for (const loaded of done) await loaded.vacate(this.#vacating);
      throw error;
    }
    for (const { weights, checkpoint } of opened) weights.checkpoint = checkpoint;
  }

  async #checkpointOf({ checkpoint, reopen }: SleepingWeights): Promise<Checkpoint> {
    if (this.#level === 2) {
      const reopened = await reopen();
      if (JSON.stringify(reopened.config) === JSON.stringify(checkpoint.config)) return reopened;
      throw new OctavoError(
        "artifact_invalid",
        `${checkpoint.path} is another model now; start a server for it.`,
      );
    }
    this.#states.check(checkpoint, "while its model slept; sleep at level 2 to have files read anew");
    return checkpoint;
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

function invalid(param: string, problem: string): OctavoError {
  return new OctavoError("invalid_request", `${param}: ${problem}`, { param });
}
