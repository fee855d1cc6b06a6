/** Handles own native memory; the creator disposes them, after which any use throws. */
export interface MappedFile extends Disposable {
  readonly path: string;
  readonly byteLength: number;
}
export interface Matrix extends Disposable {
  readonly rows: number;
  readonly cols: number;
  /** Bytes of the repacked form, or of the files where those are read in place. */
  readonly byteLength: number;
}
/** f32 vector in native memory (norm weights, biases). */
export interface Vector extends Disposable {
  readonly length: number;
}
/** Keeps the weights that it was compiled from in memory, also once their own handles are disposed. */
export interface Program extends Disposable {
  readonly kind: "program";
}
export interface KvCache extends Disposable {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength: number;
}
/** Low-rank additions to a program's linears; kept by the steps that use it, also once disposed. */
export interface Adapter extends Disposable {
  readonly kind: "adapter";
}
/**
 * Penalty counts, bias and word lists of one sequence; native code appends the tokens it samples. At most one row of a step
 * may use it, or a run of draft tokens. A bad word of several tokens bans its last token when the others have just been generated.
 */
export interface SamplerState extends Disposable {
  readonly kind: "sampler-state";
}
