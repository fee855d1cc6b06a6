import { spend } from "../work.js";

/** 256 bits: the bytes of a set. */
export type ByteSet = Uint32Array;

/** A deterministic automaton over bytes in which every state can still reach an accepting one. */
export interface AutomatonTable {
  /** `[numStates, 256]`, -1 where the byte is not allowed. */
  readonly next: Int32Array;
  /** `[numStates]`, 1 for accepting states. */
  readonly accepts: Uint8Array;
}

/**
 * A grammar as data: the front ends produce it, the compiling thread sends it, and the automaton is built from it. A `choice` of nothing matches nothing; a `sequence` of nothing matches the empty text. `all` (intersection)
 * and `not` (complement over all byte strings) hold no rules.
 */
export type Node =
  | { readonly op: "bytes"; readonly set: ByteSet }
  | { readonly op: "text"; readonly bytes: Uint8Array }
  | { readonly op: "sequence"; readonly items: readonly Node[] }
  | { readonly op: "choice"; readonly items: readonly Node[] }
  | { readonly op: "repeat"; readonly item: Node; readonly min: number; readonly max: number }
  | { readonly op: "rule"; readonly rule: number }
  | { readonly op: "all"; readonly items: readonly Node[] }
  | { readonly op: "not"; readonly item: Node }
  | { readonly op: "automaton"; readonly table: AutomatonTable; readonly state: number };

/** Bytes that every part of a grammar treats alike share a class; derivatives are taken by class. */
export interface ByteClasses {
  readonly count: number;
  /** Class of each byte. */
  readonly of: Uint8Array;
  /** Some byte of each class. */
  readonly example: Uint8Array;
}

/** Facts about rules that matching needs, computed on the compiling thread. */
export interface RuleAnalysis {
  /** Which rules match the empty text. */
  readonly nullable: readonly boolean[];
  readonly classes: ByteClasses;
  /** States of the automata in them, a KiB each. */
  readonly numTableStates: number;
  /** About the memory that all of it takes. */
  readonly bytes: number;
}

export interface RuleSet {
  readonly rules: readonly Node[];
  readonly names: readonly string[];
  readonly root: number;
  readonly analysis?: RuleAnalysis;
}

const encoder = new TextEncoder();

export const nothing: Node = { op: "choice", items: [] };
export const empty: Node = { op: "sequence", items: [] };

export function text(value: string): Node {
  return value === "" ? empty : { op: "text", bytes: encoder.encode(value) };
}

export function sequence(...items: readonly Node[]): Node {
  spend(1 + items.length);
  const kept = items.filter((item) => item !== empty);
  if (kept.includes(nothing)) return nothing;
  return kept.length === 1 ? kept[0]! : kept.length === 0 ? empty : { op: "sequence", items: kept };
}

export function choice(...items: readonly Node[]): Node {
  spend(1 + items.length);
  const kept = items.filter((item) => item !== nothing);
  return kept.length === 1 ? kept[0]! : kept.length === 0 ? nothing : { op: "choice", items: kept };
}

export function repeat(item: Node, min: number, max: number): Node {
  if (max < min) return nothing;
  if (max === 0) return empty;
  if (item === nothing) return min === 0 ? empty : nothing;
  return min === 1 && max === 1 ? item : { op: "repeat", item, min, max };
}

export function optional(item: Node): Node {
  return repeat(item, 0, 1);
}

export function all(...items: readonly Node[]): Node {
  return items.length === 1 ? items[0]! : { op: "all", items };
}

export function not(item: Node): Node {
  return { op: "not", item };
}

export function byteRange(first: number, last: number): Node {
  const set = new Uint32Array(8);
  for (let byte = first; byte <= last; byte += 1) set[byte >> 5]! |= 1 << (byte & 31);
  return { op: "bytes", set };
}

export function hasByte(set: ByteSet, byte: number): boolean {
  return ((set[byte >> 5]! >>> (byte & 31)) & 1) === 1;
}
