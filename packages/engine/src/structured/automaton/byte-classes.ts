import { plainByteSets } from "./plain-text.js";
import { type ByteSet, hasByte, type Node } from "../node.js";

/** Bytes that no part of a grammar tells apart share a class, so that derivatives are taken by class. */
export interface ByteClasses {
  readonly count: number;
  /** Class of each byte. */
  readonly of: Uint8Array;
  /** Some byte of each class. */
  readonly example: Uint8Array;
}

export function byteClasses(rules: readonly Node[]): ByteClasses {
  const sets = new Map<string, ByteSet>();
  const singles = new Uint32Array(8);
  const add = (set: ByteSet): void => void sets.set(set.join(), set);
  for (const set of plainByteSets) add(set);
  const pending: Node[] = [...rules];
  const tables = new Set<object>();
  const seen = new Set<Node>();
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    if (node.op === "bytes") add(node.set);
    else if (node.op === "text") for (const byte of node.bytes) singles[byte >> 5]! |= 1 << (byte & 31);
    else if (node.op === "automaton") {
      if (tables.has(node.table)) continue;
      tables.add(node.table);
      for (const set of columnSets(node.table.next)) add(set);
    } else if (node.op === "repeat" || node.op === "not") pending.push(node.item);
    else if (node.op !== "rule") pending.push(...node.items);
  }
  const signatures = Array.from({ length: 256 }, (_, byte) => (hasByte(singles, byte) ? `=${byte}` : ""));
  for (const set of sets.values()) {
    for (let byte = 0; byte < 256; byte += 1) signatures[byte] += hasByte(set, byte) ? "1" : "0";
  }
  const known = new Map<string, number>();
  const example: number[] = [];
  const of = Uint8Array.from(signatures, (signature, byte) => {
    let index = known.get(signature);
    if (index === undefined) {
      index = known.size;
      known.set(signature, index);
      example.push(byte);
    }
    return index;
  });
  return { count: known.size, of, example: Uint8Array.from(example) };
}

/** Bytes that an automaton never tells apart, as sets. */
function columnSets(next: Int32Array): ByteSet[] {
  const groups = new Map<string, ByteSet>();
  const numStates = next.length / 256;
  for (let byte = 0; byte < 256; byte += 1) {
    const column: number[] = [];
    for (let state = 0; state < numStates; state += 1) column.push(next[state * 256 + byte]!);
    const key = column.join();
    const set = groups.get(key) ?? new Uint32Array(8);
    set[byte >> 5]! |= 1 << (byte & 31);
    groups.set(key, set);
  }
  return [...groups.values()];
}
