import {
  type Adapter,
  type Backend,
  type KvCache,
  type KvDtype,
  kvLayersOf,
  type OutputRow,
  type RowResult,
  type RowSampling,
} from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { interleavedHeadDimOf, packAdapter } from "../../adapters/pack-adapter.js";
import { readAdapter } from "@octavo/artifacts/adapters/read-adapter";
import { IntList } from "../../kv-cache/int-list.js";
import { type LoadedModel, loadModel, type LoadModelOptions } from "../../model/load-model.js";
import type { PackingOptions } from "../../model/weight-packer.js";
import type { PromptImage } from "../../scheduler/prompt-image.js";
import { StepPlanBuilder } from "../../step/step-plan-builder.js";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { planModel } from "@octavo/artifacts/program/registry";

const BLOCK_SIZE = 4;

/** One sequence run straight on a backend, without scheduler or sampling: what oracle tests compare. */
export class ModelRunner implements Disposable {
  readonly #backend: Backend;
  readonly #model: LoadedModel;
  readonly #cache: KvCache;
  readonly #plans: StepPlanBuilder;
  readonly #blocks: IntList;
  readonly #tokens = new IntList();
  readonly #checkpoint: Checkpoint;
  #adapter: Adapter | undefined;
  /** Of the sequence's tokens, from now on. */
  images: readonly PromptImage[] = [];

  private constructor(backend: Backend, checkpoint: Checkpoint, model: LoadedModel, cache: KvCache) {
    this.#backend = backend;
    this.#checkpoint = checkpoint;
    this.#model = model;
    this.#cache = cache;
    // In reverse, so that a program that ignores the block table fails.
    this.#blocks = IntList.from(
      Array.from({ length: cache.numBlocks }, (_, index) => cache.numBlocks - 1 - index),
    );
    this.#plans = new StepPlanBuilder(1, cache.numBlocks * BLOCK_SIZE, BLOCK_SIZE, { wantLogits: true });
  }

  static async load(
    backend: Backend,
    checkpoint: Checkpoint,
    maxTokens: number,
    kvDtype: KvDtype,
    packing: PackingOptions & Pick<LoadModelOptions, "activations" | "stage"> = {},
    /** The backend that runs the model, where it is another than the one that packs it. */
    behind: (last: Backend, model: LoadedModel) => Backend = (last) => last,
  ): Promise<ModelRunner> {
    const model = await loadModel(backend, checkpoint, { ...packing, maxTokens, maxModelLen: maxTokens });
    const numBlocks = Math.ceil(maxTokens / BLOCK_SIZE);
    const running = behind(backend, model);
    const cache = running.createKvCache({
      layers: kvLayersOf(planModel(checkpoint.config).ops),
      numBlocks,
      blockSize: BLOCK_SIZE,
      dtype: kvDtype,
      ...(model.stateWidths(0).length > 0 && {
        states: { numSlots: 1, maxDraftTokens: 0, widths: model.stateWidths(0) },
      }),
    });
    return new ModelRunner(running, checkpoint, model, cache);
  }

  get weightBytes(): number {
    return this.#model.weightBytes;
  }

  get packed(): Promise<void> {
    return this.#model.packed;
  }

  get saved(): Promise<void> {
    return this.#model.saved;
  }

  /** Uses the adapter in `folder`, or none, from now on. */
  async adapt(folder: string | undefined): Promise<void> {
    this.#adapter?.[Symbol.dispose]();
    this.#adapter = undefined;
    if (folder === undefined) return;
    const modules = readAdapter(folder, this.#model.adaptable, 64);
    const target = {
      backend: this.#backend,
      program: this.#model.program,
      interleavedHeadDim: interleavedHeadDimOf(this.#checkpoint),
    };
    this.#adapter = (await packAdapter(target, modules)).handle;
  }

  /** Starts a new sequence. */
  reset(): void {
    this.#tokens.truncate(0);
  }

  /** Appends tokens in one step and returns the logits of each. */
  async logits(tokens: readonly number[]): Promise<Float32Array[]> {
    const rows = await this.#step(tokens, { kind: "sample", sampling: greedy, numLogprobs: undefined });
    return rows.map((row) => row.logits ?? missing("logits"));
  }

  /** Appends tokens in one step and returns the normalised hidden state of each. */
  async hidden(tokens: readonly number[]): Promise<Float32Array[]> {
    const rows = await this.#step(tokens, { kind: "hidden" });
    return rows.map((row) => row.hidden ?? missing("a hidden state"));
  }

  /** Appends a prompt, then decodes greedily, one token a step. */
  async greedy(prompt: readonly number[], numTokens: number): Promise<number[]> {
    const tokens: number[] = [];
    let input = prompt;
    while (tokens.length < numTokens) {
      const rows = await this.#step(input, { kind: "sample", sampling: greedy, numLogprobs: undefined });
      const token = rows.at(-1)?.token ?? missing("a token");
      tokens.push(token);
      input = [token];
    }
    return tokens;
  }

  async #step(tokens: readonly number[], output: OutputRow): Promise<readonly RowResult[]> {
    const numComputed = this.#tokens.length;
    for (const token of tokens) this.#tokens.push(token);
    const sequence = {
      tokens: this.#tokens,
      draft: noDraft,
      blocks: this.#blocks,
      numComputed,
      numScheduled: tokens.length,
      ...(this.#model.stateWidths(0).length > 0 && {
        state: { slot: 0, source: numComputed === 0 ? undefined : 0, start: numComputed, snapshots: [] },
      }),
    };
    const plan = this.#plans.build([sequence], () => ({
      ...(this.#adapter !== undefined && { adapter: { handle: this.#adapter } }),
      images: this.images,
      addRows: (_, rows) => tokens.forEach((_token, index) => rows.addRow(numComputed + index, output)),
    }));
    const wantLogits = output.kind !== "hidden";
    const result = await this.#backend.execute(this.#model.program, this.#cache, { ...plan, wantLogits });
    return result.rows;
  }

  [Symbol.dispose](): void {
    this.#adapter?.[Symbol.dispose]();
    this.#cache[Symbol.dispose]();
    this.#model[Symbol.dispose]();
  }
}

const noDraft = new IntList(0);
const greedy: RowSampling = { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 0n, index: 0 };

function missing(what: string): never {
  throw new OctavoError("internal_error", `The backend returned a row without ${what}.`);
}
