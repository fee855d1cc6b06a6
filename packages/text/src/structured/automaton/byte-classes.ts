import { plainByteSets } from "./plain-text.js";
import { type ByteSet, hasByte, type Node, type RuleAnalysis } from "../node.js";

/** A node with its place in the list that holds it. */
const nodeBytes = 128;
/** A typed array and its buffer, beside its contents. */
const arrayBytes = 200;

/** Byte classes of rules, and what the rules and their automata take. */
export function byteClasses(rules: readonly Node[]): Omit<RuleAnalysis, "nullable"> {
  const sets = new Map<string, ByteSet>();
  const singles = new Uint32Array(8);
  const add = (set: ByteSet): void => void sets.set(set.join(), set);
  for (const set of plainByteSets) add(set);
  const pending: Node[] = [...rules];
  const tables = new Set<object>();
  let numTableStates = 0;
  let bytes = 0;
  const seen = new Set<Node>();
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    bytes += nodeBytes;
    if (node.op === "bytes") {
      bytes += arrayBytes + node.set.byteLength;
      add(node.set);
    } else if (node.op === "text") {
      bytes += arrayBytes + node.bytes.length;
      for (const byte of node.bytes) singles[byte >> 5]! |= 1 << (byte & 31);
    } else if (node.op === "automaton") {
      if (tables.has(node.table)) continue;
      tables.add(node.table);
      numTableStates += node.table.accepts.length;
      bytes += node.table.next.byteLength + node.table.accepts.byteLength;
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
  return { classes: { count: known.size, of, example: Uint8Array.from(example) }, numTableStates, bytes };
}

/** Sets of bytes that an automaton treats alike. */
function columnSets(next: Int32Array): ByteSet[] {
  const hashes = new Int32Array(256);
  for (let row = 0; row < next.length; row += 256) {
    for (let byte = 0; byte < 256; byte += 1)
      hashes[byte] = Math.imul(hashes[byte]!, 0x01000193) ^ (next[row + byte]! + 1);
  }
  const groups: { readonly byte: number; readonly set: ByteSet }[] = [];
  for (let byte = 0; byte < 256; byte += 1) {
    let group = groups.find(
      (known) => hashes[known.byte] === hashes[byte] && areEqualColumns(next, known.byte, byte),
    );
    if (group === undefined) {
      group = { byte, set: new Uint32Array(8) };
      groups.push(group);
    }
    group.set[byte >> 5]! |= 1 << (byte & 31);
  }
  return groups.map(({ set }) => set);
}

function areEqualColumns(next: Int32Array, first: number, second: number): boolean {
  for (let row = 0; row < next.length; row += 256) if (next[row + first] !== next[row + second]) return false;
  return true;
}
