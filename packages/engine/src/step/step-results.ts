import type { RowResult, StepResult } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { PlannedStep } from "../scheduler/step-budget.js";
import type { Sequence } from "../scheduler/sequence.js";
import type { ActiveRequest } from "../requests/active-request.js";
import type { EngineParts } from "../engine-parts.js";
import type { StepPlanBuilder } from "./step-plan-builder.js";

/** Applies the results of a step to its requests. */
export class StepResults {
  readonly #parts: EngineParts;
  readonly #plans: StepPlanBuilder;

  /** `plans` built the plan whose results are applied. */
  constructor(parts: EngineParts, plans: StepPlanBuilder) {
    this.#parts = parts;
    this.#plans = plans;
  }

  /** Returns the number of tokens appended to sequences. */
  apply(step: PlannedStep, result: StepResult): number {
    const { options, requests } = this.#parts;
    const { rowStarts } = this.#plans;
    if (result.rows.length !== rowStarts[step.sequences.length]) {
      throw new OctavoError(
        "internal_error",
        `the backend returned ${result.rows.length} rows instead of ${rowStarts.at(-1)}`,
      );
    }
    const nowMs = performance.now();
    let generatedTokens = 0;
    for (let index = 0; index < step.sequences.length; index += 1) {
      const sequence = step.sequences[index]!;
      // A sibling may have failed the request earlier in this step.
      if (sequence.status !== "running") continue;
      const request = requests.of(sequence);
      const start = rowStarts[index]!;
      const end = rowStarts[index + 1]!;
      const before = sequence.numTokens;
      this.#applyRows(request, sequence, result.rows, start, end, nowMs);
      generatedTokens += sequence.numTokens - before;
      if (options.hooks.onLogits !== undefined) this.#reportLogits(sequence, result.rows, start, end);
    }
    return generatedTokens;
  }

  #applyRows(
    request: ActiveRequest,
    sequence: Sequence,
    rows: readonly RowResult[],
    start: number,
    end: number,
    nowMs: number,
  ): void {
    const { scheduler, requests } = this.#parts;
    scheduler.commit(sequence);
    // Blocks that led to a bad row must not be shared.
    for (let row = start; row < end; row += 1) {
      if (rows[row]!.error === "non_finite_logits") scheduler.forget(sequence);
    }
    try {
      const isDone = request.isOver || request.applyRows(sequence, rows, start, end, nowMs);
      this.#settleDraft(request, sequence);
      if (!request.isOver) requests.noteEvents(request);
      if (isDone) requests.remove(request, sequence);
    } catch (thrown) {
      const error = OctavoError.from(thrown);
      if (error.code === "internal_error") scheduler.forget(sequence);
      requests.fail(request, error);
    }
  }

  #settleDraft(request: ActiveRequest, sequence: Sequence): void {
    const { speculation, observers } = this.#parts;
    const settled = speculation?.settle(sequence);
    if (settled === undefined) return;
    const { numDrafted, numAccepted } = settled;
    request.timeline.noteDraft(numDrafted, numAccepted);
    observers.notify("onDraft", numDrafted, numAccepted);
  }

  #reportLogits(sequence: Sequence, rows: readonly RowResult[], start: number, end: number): void {
    for (let row = start; row < end; row += 1) {
      const logits = rows[row]!.logits;
      if (logits === undefined) continue;
      const position = this.#plans.positionOfRow(row);
      // Draft tokens behind a stop belong to no output.
      if (position + 1 >= sequence.numTokens) return;
      this.#parts.options.hooks.onLogits?.(sequence.group.requestId, sequence.index, position, logits);
    }
  }
}
