import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type {
  Adapter,
  Backend,
  KvCache,
  KvCacheSpec,
  MappedFile,
  Matrix,
  OutputRow,
  Program,
  RowError,
  RowResult,
  SamplerState,
  SamplerStateSpec,
  StepPlan,
  StepResult,
  Vector,
} from "@octavo/kernels";
import { logSoftmax, ranking } from "@octavo/kernels/testing/logit-harness";
import { OctavoError } from "@octavo/protocol/errors";
import { FakeStates } from "./fake-states.js";
import { FakeSamplerState, logitsOf, mix, noToken, sampleToken } from "./fake-model.js";
import type { VirtualClock } from "./virtual-clock.js";

export interface FakeBackendOptions {
  readonly vocabSize: number;
  readonly hiddenSize?: number;
  /** Resolve steps without giving the event loop a turn; default false. */
  readonly answersAtOnce?: boolean;
  /** The greedy token after `context`; undefined keeps the model's own. */
  readonly script?: (context: readonly number[]) => number | undefined;
  /** The compute time that a step reports; no time passes. */
  readonly computeMs?: (plan: StepPlan) => number;
  /** Advanced by the compute time of each step. */
  readonly clock?: VirtualClock;
  /** Called before each step; a rejection makes the step fail. */
  readonly beforeStep?: (plan: StepPlan) => Promise<void> | void;
  /** The error of the row that ends with `context`, if any. */
  readonly rowError?: (context: readonly number[]) => RowError | undefined;
}

/** An adapter of the fake backend: what is computed under it depends on its seed. */
export class FakeAdapter implements Adapter {
  readonly kind = "adapter";
  readonly seed: number;
  isDisposed = false;

  constructor(seed: number) {
    this.seed = seed;
  }

  [Symbol.dispose](): void {
    this.isDisposed = true;
  }
}

/**
 * A backend without a model that is as sensitive as one. A slot holds its token, its position and a hash of everything visible
 * when it was written, as real keys and values depend on what came before; an output row is computed from all slots of its
 * context. A wrong block, a stale slot, a skipped or repeated token: each changes logits. Plans are checked.
 */
export class FakeBackend implements Backend {
  readonly info = { name: "fake", instructionSet: "none", features: [], numThreads: 1 };
  readonly #options: FakeBackendOptions;
  readonly #samplerStates = new Set<SamplerState>();
  #numSteps = 0;
  #isExecuting = false;

  constructor(options: FakeBackendOptions) {
    this.#options = options;
  }

  get numSteps(): number {
    return this.#numSteps;
  }

  /** Sampler states created and not yet disposed. */
  get numLiveSamplerStates(): number {
    return this.#samplerStates.size;
  }

  /** Stands for any program: this backend ignores them. */
  readonly program: Program = { kind: "program", [Symbol.dispose]: () => {} };

  mapFile(): MappedFile {
    throw unsupported("mapFile");
  }

  createMatrix(): Promise<Matrix> {
    throw unsupported("createMatrix");
  }

  createVector(): Vector {
    throw unsupported("createVector");
  }

  compile(): Program {
    return this.program;
  }

  createKvCache(spec: KvCacheSpec): KvCache {
    return new FakeKvCache(spec);
  }

  createSamplerState(spec: SamplerStateSpec): SamplerState {
    const state = new FakeSamplerState(spec, () => this.#samplerStates.delete(state));
    this.#samplerStates.add(state);
    return state;
  }

  async execute(_program: Program, cache: KvCache, plan: StepPlan): Promise<StepResult> {
    assert(
      cache instanceof FakeKvCache && !cache.isDisposed,
      "the step's KV cache belongs to another backend or is disposed",
    );
    assert(!this.#isExecuting, "a step was started while another ran");
    this.#isExecuting = true;
    try {
      await this.#options.beforeStep?.(plan);
      if (this.#options.answersAtOnce !== true) await new Promise((resolve) => setImmediate(resolve));
      this.#numSteps += 1;
      const rows = cache.run(plan, (row, context, hash) => this.#row(plan, row, context, hash));
      const computeMs = this.#options.computeMs?.(plan) ?? 0.01 * plan.numTokens;
      this.#options.clock?.advance(computeMs);
      return { rows, computeMs };
    } finally {
      this.#isExecuting = false;
    }
  }

  [Symbol.dispose](): void {}

  #row(plan: StepPlan, row: OutputRow, context: readonly number[], hash: number): RowResult {
    const { vocabSize, hiddenSize = 8, rowError, script } = this.#options;
    const error = rowError?.(context);
    if (error !== undefined) return { token: -1, error };
    if (row.kind === "hidden") {
      return {
        token: -1,
        hidden: Float32Array.from({ length: hiddenSize }, (_, column) => mix(hash, column) / 2 ** 31 - 1),
      };
    }
    const logits = logitsOf(hash, vocabSize);
    const scripted = script?.(context);
    if (scripted !== undefined) logits[scripted] = 100;
    const token = row.kind === "score" ? row.target : sampleToken(logits, row.sampling);
    if (token === noToken) return { token, error: "no_token_allowed" };
    return {
      ...rowLogprobs(row, token, logits),
      ...(plan.wantLogits === true && { logits }),
      ...(row.kind === "sample" && row.wantDigest === true && { digest: digestOf(logits) }),
    };
  }
}

function digestOf(logits: Float32Array): string {
  return createHash("sha256").update(new Uint8Array(logits.buffer)).digest("hex").slice(0, 16);
}

function rowLogprobs(
  row: Exclude<OutputRow, { kind: "hidden" }>,
  token: number,
  logits: Float32Array,
): RowResult {
  if (row.numLogprobs === undefined) return { token };
  const logprobs = logSoftmax(logits);
  const order = ranking(logprobs);
  const topTokens = Int32Array.from(order.slice(0, row.numLogprobs));
  return {
    token,
    logprob: logprobs[token] ?? Number.NaN,
    rank: order.indexOf(token) + 1,
    topTokens,
    topLogprobs: Float32Array.from(topTokens, (id) => logprobs[id] ?? Number.NaN),
    ...(row.kind === "sample" &&
      row.logprobIds !== undefined && {
        idLogprobs: Float32Array.from(row.logprobIds, (id) => logprobs[id] ?? Number.NaN),
      }),
  };
}

class FakeKvCache implements KvCache {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength = 0;
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;
  readonly #histories: Uint32Array;
  readonly #states: FakeStates | undefined;
  isDisposed = false;

  constructor(spec: KvCacheSpec) {
    this.numBlocks = spec.numBlocks;
    this.blockSize = spec.blockSize;
    const numSlots = spec.numBlocks * spec.blockSize;
    this.#tokens = new Int32Array(numSlots).fill(-1);
    this.#positions = new Int32Array(numSlots).fill(-1);
    this.#histories = new Uint32Array(numSlots);
    this.#states = spec.states && new FakeStates(spec.states);
  }

  [Symbol.dispose](): void {
    this.isDisposed = true;
  }

  run(
    plan: StepPlan,
    output: (row: OutputRow, context: readonly number[], hash: number) => RowResult,
  ): RowResult[] {
    this.#checkPlan(plan);
    this.#states?.run(plan);
    const rows: RowResult[] = [];
    for (let sequence = 0; sequence < plan.numSequences; sequence += 1) {
      const start = plan.queryStarts[sequence]!;
      const end = plan.queryStarts[sequence + 1]!;
      const table = plan.blockTables.subarray(
        plan.blockTableStarts[sequence],
        plan.blockTableStarts[sequence + 1],
      );
      for (let token = start; token < end; token += 1) {
        const slot = plan.slots[token]!;
        this.#tokens[slot] = plan.tokenIds[token]!;
        this.#positions[slot] = plan.positions[token]!;
        this.#histories[slot] = 0;
        this.#histories[slot] = mix(
          this.#gather(table, plan.positions[token]!).hash,
          adapterSeed(plan, sequence),
        );
      }
      for (
        let index = rows.length;
        index < plan.outputs.length && plan.outputTokens[index]! < end;
        index += 1
      ) {
        const row = plan.outputs[index]!;
        const token = plan.outputTokens[index]!;
        if (row.kind === "sample" && row.afterDraft === true) {
          assert(
            token > start && plan.outputTokens[index - 1] === token - 1,
            "a row after a draft follows no row",
          );
          if (rows[index - 1]!.token !== plan.tokenIds[token]) {
            rows.push({ token: -1 });
            continue;
          }
        }
        const { context, hash } = this.#gather(table, plan.positions[token]!);
        this.#states?.checkContext(plan.states!.slots[sequence]!, context);
        rows.push(output(row, context, hash));
      }
    }
    assert.equal(rows.length, plan.outputs.length, "an output row belongs to no token");
    return rows;
  }

  /** Folds the contents of the slots of positions 0..last. */
  #gather(table: Int32Array, last: number): { context: number[]; hash: number } {
    let hash = 1;
    const context: number[] = [];
    for (let position = 0; position <= last; position += 1) {
      const slot =
        table[Math.floor(position / this.blockSize)]! * this.blockSize + (position % this.blockSize);
      assert.equal(this.#positions[slot], position, `slot ${slot} does not hold position ${position}`);
      context.push(this.#tokens[slot]!);
      hash = mix(mix(hash, this.#tokens[slot]!), this.#histories[slot]!);
    }
    return { context, hash };
  }

  #checkPlan(plan: StepPlan): void {
    const { numTokens, numSequences, queryStarts, blockTableStarts, outputs, outputTokens } = plan;
    assert(numTokens > 0 && numSequences > 0, "an empty step");
    assert(
      queryStarts[0] === 0 && queryStarts[numSequences] === numTokens,
      "queries do not cover the step's tokens",
    );
    const readers = new Map<number, Set<number>>();
    const writers = new Map<number, number>();
    const slots = new Set<number>();
    for (let sequence = 0; sequence < numSequences; sequence += 1) {
      const start = queryStarts[sequence]!;
      const end = queryStarts[sequence + 1]!;
      assert(end > start, "a sequence without tokens");
      const table = plan.blockTables.subarray(blockTableStarts[sequence], blockTableStarts[sequence + 1]);
      const contextLength = plan.contextLengths[sequence]!;
      assert.equal(
        table.length,
        Math.ceil(contextLength / this.blockSize),
        "a block table of the wrong length",
      );
      assert.equal(new Set(table).size, table.length, "a block twice in a table");
      for (const block of table) {
        assert(block >= 0 && block < this.numBlocks, `block ${block} is out of range`);
        readers.set(block, (readers.get(block) ?? new Set()).add(sequence));
      }
      for (let token = start; token < end; token += 1) {
        const position = contextLength - end + token;
        assert.equal(plan.positions[token], position, "positions do not end at the context length");
        const block = table[Math.floor(position / this.blockSize)]!;
        const slot = plan.slots[token]!;
        assert.equal(slot, block * this.blockSize + (position % this.blockSize), "a slot outside its block");
        assert(!slots.has(slot), "a slot is written twice");
        assert(plan.tokenIds[token]! >= 0, "a negative token id");
        slots.add(slot);
        writers.set(block, sequence);
      }
    }
    for (const [block, writer] of writers) {
      assert(readers.get(block)?.size === 1, `block ${block} is written by sequence ${writer} and shared`);
    }
    for (let row = 0; row < outputs.length; row += 1) {
      const token = outputTokens[row]!;
      assert(
        token >= 0 && token < numTokens && (row === 0 || token > outputTokens[row - 1]!),
        "output rows out of order",
      );
    }
  }
}

/** 0 without an adapter. */
function adapterSeed(plan: StepPlan, sequence: number): number {
  const adapter = plan.adapters?.[sequence];
  if (adapter === undefined) return 0;
  assert(
    adapter instanceof FakeAdapter && !adapter.isDisposed,
    "the step's adapter belongs to another backend or is disposed",
  );
  return adapter.seed;
}

function unsupported(method: string): OctavoError {
  return new OctavoError("not_implemented", `the fake backend has no ${method}`);
}
