import type { SourceUnit } from "../source/source-model.js";
import type { UnitRecord, UnitToWrite, WorkFolder } from "./work-folder.js";

/** Turns units of a model, in their order, into what is written. */
export interface UnitConverter extends Disposable {
  /**
   * Bytes that fix where weights are written, known before any is; a run resumes an earlier one only if they are equal.
   */
  readonly layout: Uint8Array;
  /**
   * Resumes after `finished` units of an earlier run; returns how many of them can be kept, since scratch files may be gone.
   */
  resume(finished: readonly UnitRecord[], work: WorkFolder): Promise<number>;
  convert(unit: SourceUnit, index: number, work: WorkFolder): Promise<UnitToWrite>;
  /** Writes what stands beside the weights, once all units are in the artifact. */
  finish(work: WorkFolder): Promise<void>;
}
