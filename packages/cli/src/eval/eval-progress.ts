import type { ProgressStream } from "@octavo/engine";
import type { CheckName, EvaluationProgress, Verdict } from "@octavo/evals";
import { progressBar, timeLeft } from "../output/progress-text.js";
import { isCapable } from "@octavo/artifacts/hub/progress-bar";

const barWidth = 28;
const redrawMs = 100;
const plainStep = 0.1;

interface CheckState {
  readonly name: CheckName;
  readonly done: number;
  readonly total: number | undefined;
  readonly verdict: Verdict | undefined;
}

/**
 * How far a run is. On a terminal: a bar for the cases and a table of the checks, redrawn in place; elsewhere a plain line at
 * every tenth of the way and one for each verdict.
 */
export function createEvalProgress(stream: ProgressStream): {
  readonly update: (progress: EvaluationProgress) => void;
  readonly interrupt: (journal: string | undefined) => void;
  readonly end: () => void;
} {
  const checks: CheckState[] = [];
  const startedMs = performance.now();
  let cases: Extract<EvaluationProgress, { phase: "cases" }> | undefined;
  let drawnLines = 0;
  let drawnMs = 0;
  let nextPlain = 0;

  const lines = (): readonly string[] => [
    ...(cases === undefined ? [] : [caseLine(cases, performance.now() - startedMs)]),
    ...checks.map(checkLine),
  ];
  const draw = (): void => {
    const width = Math.max(20, stream.columns ?? 100) - 1;
    const shown = lines().map((line) => line.slice(0, width));
    const up = drawnLines === 0 ? "" : `\u001b[${drawnLines}A`;
    stream.write(`${up}${shown.map((line) => `\r\u001b[2K${line}\n`).join("")}`);
    drawnLines = shown.length;
    drawnMs = performance.now();
  };

  /** At every tenth of the way; where the end is not known, whenever the count has doubled. */
  const isDue = ({ done, total }: { readonly done: number; readonly total: number | undefined }): boolean => {
    const at = total === undefined ? done : done / total;
    if (at < nextPlain && done !== total) return false;
    nextPlain = total === undefined ? 2 * at : (Math.floor(at / plainStep + 1e-9) + 1) * plainStep;
    return true;
  };

  return {
    update(progress) {
      const isNews = progress.phase === "check" && noteCheck(checks, progress);
      if (progress.phase === "cases") cases = progress;
      if (isCapable(stream)) {
        const isWhole = progress.phase === "cases" && progress.done === progress.total;
        if (isNews || isWhole || performance.now() - drawnMs > redrawMs) draw();
        return;
      }
      if (progress.phase === "check") {
        if (progress.result !== undefined) stream.write(`${progress.check}: ${progress.result.verdict}\n`);
        return;
      }
      if (!isDue(progress)) return;
      stream.write(`${caseLine(progress, performance.now() - startedMs)}\n`);
    },
    interrupt(journal) {
      stream.write(
        journal === undefined
          ? "\nstopping; with --journal the next run would resume from here\n"
          : `\nstopping; the same command resumes from ${journal}\n`,
      );
      drawnLines = 0;
    },
    end() {
      if (isCapable(stream) && (cases !== undefined || checks.length > 0)) {
        draw();
        stream.write("\n");
      }
    },
  };
}

/** Whether the table has a new line or a new verdict. */
function noteCheck(checks: CheckState[], progress: Extract<EvaluationProgress, { phase: "check" }>): boolean {
  const { check: name, done, total, result } = progress;
  const index = checks.findIndex((known) => known.name === name);
  const state = { name, done, total, verdict: result?.verdict };
  if (index === -1) checks.push(state);
  else checks[index] = state;
  return index === -1 || result !== undefined;
}

function caseLine(
  { done, total, failed, resumed }: Extract<EvaluationProgress, { phase: "cases" }>,
  elapsedMs: number,
): string {
  const share = total === undefined || total === 0 ? 0 : done / total;
  const perSecond = (done - resumed) / (elapsedMs / 1000);
  const left =
    total === undefined || perSecond <= 0 || done >= total
      ? ""
      : `, ${timeLeft((1000 * (total - done)) / perSecond)} left`;
  const notes = [
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(resumed > 0 ? [`${resumed} from the journal`] : []),
  ];
  return `${total === undefined ? "" : `${progressBar(share, barWidth)} `}${done}${total === undefined ? "" : ` of ${total}`} ${done === 1 && total === undefined ? "case" : "cases"}${left}${notes.map((note) => `, ${note}`).join("")}`;
}

function checkLine({ name, done, total, verdict }: CheckState): string {
  const mark =
    verdict === undefined ? "\u2026" : { pass: "\u2713", fail: "\u2715", inconclusive: "?" }[verdict];
  const share = total === undefined || total === 0 ? 0 : done / total;
  return `${mark} ${name.padEnd(16)} ${verdict ?? (total === undefined ? "running" : `${progressBar(share, barWidth)} ${done} of ${total}`)}`;
}
