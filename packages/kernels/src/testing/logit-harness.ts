import type {
  Backend,
  KvCache,
  OutputRow,
  Program,
  RowSampling,
  SamplerState,
  SamplerStateSpec,
  StepResult,
} from "../backend.js";
import { matrix, promptPlan, smallestCache } from "./op-harness.js";

/** A model whose logits are chosen: token t's logits are row t of a table, through a head that is the identity. */
export class LogitModel implements Disposable {
  readonly vocabSize: number;
  readonly #backend: Backend;
  readonly #program: Program;
  readonly #cache: KvCache;

  static async create(
    backend: Backend,
    table: readonly ArrayLike<number>[],
    mostRows: number,
    scale = 1,
  ): Promise<LogitModel> {
    const size = table[0]?.length ?? 0;
    const identity = new Float32Array(size * size);
    for (let i = 0; i < size; i++) identity[i * size + i] = 1;
    const weight = await matrix(
      backend,
      table.length,
      size,
      table.flatMap((row) => Array.from(row)),
    );
    const program = backend.compile({
      buffers: [size],
      ops: [
        { op: "embedding", weight, out: { buffer: 0 }, scale },
        { op: "gather", in: { buffer: 0 }, out: { buffer: 0 } },
      ],
      hidden: { buffer: 0 },
      head: { weight: await matrix(backend, size, size, identity) },
      maxTokens: mostRows,
    });
    return new LogitModel(backend, program, size);
  }

  private constructor(backend: Backend, program: Program, vocabSize: number) {
    this.vocabSize = vocabSize;
    this.#backend = backend;
    this.#program = program;
    this.#cache = backend.createKvCache(smallestCache);
  }

  /** One output row per token. */
  run(tokens: ArrayLike<number>, outputs: readonly OutputRow[], wantLogits = false): Promise<StepResult> {
    return this.#backend.execute(this.#program, this.#cache, { ...promptPlan(tokens, outputs), wantLogits });
  }

  /** The token sampled from row `row` of the table. */
  async sample(row: number, sampling: RowSampling): Promise<number> {
    const { rows } = await this.run([row], [{ kind: "sample", sampling, numLogprobs: undefined }]);
    return rows[0]?.token ?? -1;
  }

  [Symbol.dispose](): void {
    this.#program[Symbol.dispose]();
    this.#cache[Symbol.dispose]();
  }
}

export const greedy: RowSampling = { temperature: 0, topP: 1, topK: 0, minP: 0, seed: 0n, index: 0 };

export function samplerState(backend: Backend, spec: Partial<SamplerStateSpec>): SamplerState {
  return backend.createSamplerState({
    promptTokens: new Int32Array(0),
    outputTokens: new Int32Array(0),
    repetitionPenalty: 1,
    frequencyPenalty: 0,
    presencePenalty: 0,
    ...spec,
  });
}

/** Log-softmax in double precision. */
export function logSoftmax(logits: ArrayLike<number>): number[] {
  const values = Array.from(logits);
  const most = Math.max(...values);
  const total = values.reduce((sum, value) => sum + Math.exp(value - most), 0);
  return values.map((value) => value - most - Math.log(total));
}

/** Ids from most to least likely, lower ids first among equals. */
export function ranking(logits: ArrayLike<number>): number[] {
  return Array.from(logits, (_, id) => id).toSorted((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0) || a - b);
}
