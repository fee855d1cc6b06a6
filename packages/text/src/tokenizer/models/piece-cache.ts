/** Pieces longer than this are rarely seen twice. */
const maxPieceLength = 64;
const generationSize = 32_768;

/**
 * Ids of recent pieces, bounded: of two generations, the older is dropped when the younger is full,
 * and a hit in the older moves the entry to the younger. About as good as least-recently-used at the cost of a map.
 */
export class PieceCache {
  #young = new Map<string, Int32Array>();
  #old = new Map<string, Int32Array>();

  get(piece: string): Int32Array | undefined {
    const found = this.#young.get(piece);
    if (found !== undefined) return found;
    const older = this.#old.get(piece);
    if (older !== undefined) this.set(piece, older);
    return older;
  }

  set(piece: string, ids: Int32Array): void {
    if (piece.length > maxPieceLength) return;
    if (this.#young.size >= generationSize) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(piece, ids);
  }
}
