/**
 * Re-laying of packed integers. The kernels take row-major fields of 2 to 4 bits, the first lowest, or bytes (`MatrixSource` in
 * the backend's interface); words are 32-bit, little-endian, their fields counted from the least significant bit.
 */

/** `[rows, cols]` words as `[cols, rows]`, a tile that fits the nearest cache at a time. */
export function transposeWords<T extends Uint32Array | Float32Array>(
  words: T,
  rows: number,
  cols: number,
): T {
  const tile = 32;
  const out = words.slice() as T;
  for (let top = 0; top < rows; top += tile) {
    const bottom = Math.min(top + tile, rows);
    for (let left = 0; left < cols; left += tile) {
      const right = Math.min(left + tile, cols);
      for (let row = top; row < bottom; row++) {
        for (let col = left; col < right; col++) out[col * rows + row] = words[row * cols + col] ?? 0;
      }
    }
  }
  return out;
}

/** Field `index` of a dense stream of `bits`-wide fields that begins at word `start`; 1 to 8 bits, fields may span words. */
export function bitField(words: Uint32Array, start: number, index: number, bits: number): number {
  const bit = index * bits;
  const word = start + (bit >>> 5);
  const shift = bit & 31;
  let value = (words[word] ?? 0) >>> shift;
  if (shift + bits > 32) value |= (words[word + 1] ?? 0) << (32 - shift);
  return value & ((1 << bits) - 1);
}

/** A dense bit stream per row, `[rows, wordsPerRow]`, as one byte per field: `[rows, cols]`. */
export function unpackRows(words: Uint32Array, rows: number, cols: number, bits: number): Uint8Array {
  const stride = words.length / rows;
  const out = new Uint8Array(rows * cols);
  for (let row = 0; row < rows; row++) {
    for (let col = 0; col < cols; col++) out[row * cols + col] = bitField(words, row * stride, col, bits);
  }
  return out;
}

/** Codes below 16, one per byte, as nibbles: two per byte, low first. */
export function packNibbles(codes: Uint8Array): Uint8Array {
  const out = new Uint8Array(codes.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = (codes[2 * i] ?? 0) | ((codes[2 * i + 1] ?? 0) << 4);
  return out;
}

/** Fields of 2 to 4 bits, `[rows, cols]`, with the columns in another order: new column j is old column `order[j]`. */
export function reorderFields(
  fields: Uint8Array,
  rows: number,
  cols: number,
  bits: number,
  order: Int32Array,
): Uint8Array {
  const stride = (cols * bits) / 8;
  const mask = (1 << bits) - 1;
  const out = new Uint8Array(fields.length);
  for (let row = 0; row < rows; row++) {
    let at = row * stride;
    let pending = 0;
    let numPending = 0;
    for (let column = 0; column < cols; column++) {
      const bit = (order[column] ?? 0) * bits;
      const from = row * stride + (bit >> 3);
      const pair = (fields[from] ?? 0) | ((fields[from + 1] ?? 0) << 8);
      pending |= ((pair >> (bit & 7)) & mask) << numPending;
      numPending += bits;
      if (numPending < 8) continue;
      out[at++] = pending;
      pending >>= 8;
      numPending -= 8;
    }
  }
  return out;
}

/** The same for one byte per column. */
export function reorderBytes(bytes: Uint8Array, rows: number, cols: number, order: Int32Array): Uint8Array {
  const out = new Uint8Array(bytes.length);
  for (let row = 0; row < rows; row++) {
    const start = row * cols;
    for (let col = 0; col < cols; col++) out[start + col] = bytes[start + (order[col] ?? 0)] ?? 0;
  }
  return out;
}
