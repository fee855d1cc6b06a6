import type { Backend } from "@octavo/kernels";
import { timesTransposed } from "./matrix-products.js";

/** Rows kept of an input to measure outputs with. */
const sampleRows = 256;
/** The golden ratio's fraction: its multiples modulo 1 are spread evenly and have no period. */
const golden = (Math.sqrt(5) - 1) / 2;
/** Rows whose products are added to the second moments together. */
const pendingRows = 1024;

/** What the inputs of one linear layer are like on the calibration texts. */
export class InputStatistics {
  readonly width: number;
  /** Largest magnitude, and sum of magnitudes, by column. */
  readonly maxima: Float32Array;
  readonly #magnitudes: Float64Array;
  readonly #squares: Float64Array;
  readonly #every: number;
  readonly #sample: Float32Array[] = [];
  #numRows = 0;
  /** Sum of x xᵀ over the rows, where it is asked for. */
  readonly #moments: Float32Array | undefined;
  #pending: Float32Array[] = [];

  /** @param totalRows that will be added */
  constructor(width: number, totalRows: number, wantsMoments: boolean) {
    this.width = width;
    this.maxima = new Float32Array(width);
    this.#magnitudes = new Float64Array(width);
    this.#squares = new Float64Array(width);
    this.#every = Math.ceil(totalRows / sampleRows);
    this.#moments = wantsMoments ? new Float32Array(width * width) : undefined;
  }

  async add(backend: Backend, rows: readonly Float32Array[]): Promise<void> {
    for (const row of rows) {
      for (let i = 0; i < row.length; i++) {
        const magnitude = Math.abs(row[i]!);
        if (magnitude > this.maxima[i]!) this.maxima[i] = magnitude;
        this.#magnitudes[i] = this.#magnitudes[i]! + magnitude;
        this.#squares[i] = this.#squares[i]! + magnitude * magnitude;
      }
      if (this.#isSampled(this.#numRows++)) this.#sample.push(row.slice());
    }
    if (this.#moments === undefined) return;
    for (const row of rows) this.#pending.push(row.slice());
    if (this.#pending.length >= pendingRows) await this.#flush(backend);
  }

  /** Mean magnitude by column; 0 where no row was seen. */
  get means(): Float64Array {
    return this.#magnitudes.map((sum) => sum / Math.max(1, this.#numRows));
  }

  /** Mean square by column; 0 where no row was seen. */
  get meanSquares(): Float64Array {
    return this.#squares.map((sum) => sum / Math.max(1, this.#numRows));
  }

  /** Rows from all parts of the texts and all places in their sequences, one after another. */
  get sample(): Float32Array {
    const out = new Float32Array(this.#sample.length * this.width);
    for (const [i, row] of this.#sample.entries()) out.set(row, i * this.width);
    return out;
  }

  /** `[width, width]`, mean of x xᵀ; that of inputs all alike where no row was seen. The caller may change it. */
  async takeMoments(backend: Backend): Promise<Float32Array> {
    await this.#flush(backend);
    const moments = this.#moments ?? new Float32Array();
    if (this.#numRows === 0) {
      for (let i = 0; i < moments.length; i += this.width + 1) moments[i] = 1;
      return moments;
    }
    for (let i = 0; i < moments.length; i++) moments[i] = moments[i]! / this.#numRows;
    return moments;
  }

  /**
   * One row of every stretch, each time at another place in it: stretches as long as a sequence, or half of one, would otherwise
   * give its first token every time, and first tokens are unlike all others.
   */
  #isSampled(index: number): boolean {
    const stretch = Math.floor(index / this.#every);
    return index % this.#every === Math.floor(((stretch * golden) % 1) * this.#every);
  }

  async #flush(backend: Backend): Promise<void> {
    const rows = this.#pending;
    this.#pending = [];
    const { width } = this;
    if (rows.length === 0 || this.#moments === undefined) return;
    const columns = new Float32Array(width * rows.length);
    for (const [r, row] of rows.entries()) {
      for (let i = 0; i < width; i++) columns[i * rows.length + r] = row[i]!;
    }
    const product = await timesTransposed(backend, columns, columns, rows.length);
    for (let i = 0; i < product.length; i++) this.#moments[i] = this.#moments[i]! + product[i]!;
  }
}
