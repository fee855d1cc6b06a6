import type { RowResult } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { EmbeddingRequest, FinishedRequest, ServingRecord, Usage } from "../api.js";
import type { EvidenceLog } from "../evidence/evidence-log.js";
import { Sequence } from "../scheduler/sequence.js";
import { ActiveRequest, type RowSink } from "./active-request.js";
import { checkRowError } from "../step/token-logprob.js";

export interface EmbeddingResult {
  readonly embedding: Float32Array;
  readonly usage: Usage;
}

interface PooledRows {
  readonly rowSize: number;
  readonly poolsRows: boolean;
}

/**
 * An embedding request in the engine. Where the program does not pool, mean pooling adds hidden states in f64 in order of position,
 * whichever steps compute them, so the result does not depend on how the prompt is split into steps.
 */
export class EmbeddingTask extends ActiveRequest {
  override readonly sequences: readonly [Sequence];
  readonly result: Promise<EmbeddingResult>;
  readonly #request: EmbeddingRequest;
  readonly #poolsRows: boolean;
  /** What was added up so far, or the largest values. */
  readonly #sum: Float64Array;
  #numPooled = 0;
  #completes = false;
  #resolve!: (result: EmbeddingResult) => void;
  #reject!: (error: OctavoError) => void;

  constructor(
    request: EmbeddingRequest,
    order: number,
    { rowSize, poolsRows }: PooledRows,
    evidence: EvidenceLog,
  ) {
    super(request, order, evidence);
    this.#request = request;
    this.#poolsRows = poolsRows;
    this.#sum = new Float64Array(rowSize).fill(request.pooling === "max" ? -Infinity : 0);
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.sequences = [new Sequence(this, 0, request.promptTokens.slice())];
    if (request.pooling !== "last") this.sequences[0].firstWantedRow = 0;
  }

  override get secondFrom(): number | undefined {
    return this.#request.secondFrom;
  }

  override prepare(): void {}

  override addRows(sequence: Sequence, rows: RowSink): void {
    const end = sequence.numComputed + sequence.numScheduled;
    this.#completes = end === sequence.numTokens;
    const { pooling } = this.#request;
    if (pooling === "last") {
      if (this.#completes) rows.addRow(end - 1, { kind: "hidden" });
      return;
    }
    if (pooling === "cls") {
      if (this.#numPooled === 0) rows.addRow(0, { kind: "hidden" });
      return;
    }
    if (this.#poolsRows) {
      rows.addRow(end - 1, { kind: "hidden", pool: { kind: pooling, tokens: end } });
      return;
    }
    for (let position = Math.max(sequence.numComputed, this.#numPooled); position < end; position += 1) {
      rows.addRow(position, { kind: "hidden" });
    }
  }

  override applyRows(
    sequence: Sequence,
    results: readonly RowResult[],
    start: number,
    rowsEnd: number,
    nowMs: number,
  ): boolean {
    const { pooling } = this.#request;
    const isLargest = pooling === "max";
    for (let row = start; row < rowsEnd; row += 1) {
      const result = results[row]!;
      checkRowError(result);
      const { hidden } = result;
      if (hidden?.length !== this.#sum.length) {
        throw new OctavoError("internal_error", "The model gave no hidden state for this request.");
      }
      for (let column = 0; column < hidden.length; column += 1) {
        const [before = 0, value = 0] = [this.#sum[column], hidden[column]];
        this.#sum[column] = isLargest ? Math.max(before, value) : before + value;
      }
      this.#numPooled += 1;
    }
    if (pooling === "cls") sequence.firstWantedRow = Number.POSITIVE_INFINITY;
    else if (pooling !== "last") sequence.firstWantedRow = this.#numPooled;
    if (!this.#completes) return false;
    if (!this.#sum.every(Number.isFinite)) {
      throw new OctavoError("internal_error", "The model's hidden states for this request are not finite.");
    }
    this.timeline.firstTokenMs = nowMs;
    this.timeline.lastTokenMs = nowMs;
    return true;
  }

  override release(): void {}

  override deliver(): void {}

  protected override conclude(
    isAborted: boolean,
    usage: Usage,
    _record: ServingRecord,
  ): Pick<FinishedRequest, "reasons" | "n" | "maxTokens"> {
    if (isAborted) this.#reject(new OctavoError("request_cancelled", "The request was cancelled."));
    else this.#resolve({ embedding: this.#pooled(), usage });
    return { reasons: [isAborted ? "abort" : "stop"], n: 1, maxTokens: undefined };
  }

  protected override reject(error: OctavoError): void {
    this.#reject(error);
  }

  #pooled(): Float32Array {
    let scale = this.#request.pooling === "mean" ? 1 / this.#numPooled : 1;
    if (this.#request.normalize) {
      const norm = Math.sqrt(this.#sum.reduce((squares, value) => squares + (value * scale) ** 2, 0));
      if (norm > 0) scale /= norm;
    }
    return Float32Array.from(this.#sum, (value) => value * scale);
  }
}
