import type { SourceUnit } from "../source/source-model.js";
import type { UnitRecord, UnitToWrite, WorkFolder } from "./work-folder.js";

/** Turns units of a model, in their order, into what is written. */
export interface UnitConverter extends Disposable {
  /**
   * What is written beside weights, and decides where they lie, before all of them are there; a run goes on only where an earlier one
   * wrote the same.
   */
  readonly layout: Uint8Array;
  /**
   * Takes up the work after `finished` units of an earlier run, and says how many of them it can build on: what it needs beside
   * the artifact may be gone.
   */
  resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number>;
  convert(unit: SourceUnit, index: number, work: WorkFolder): Promise<UnitToWrite>;
  /** Writes what stands beside the weights, once all units are in the artifact. */
  finish(work: WorkFolder): Promise<void>;
}
