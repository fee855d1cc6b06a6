import type { Advice, Hypothesis, RuleOfThumb, Verdict } from "../check.js";
import { defineCheck } from "../define-check.js";
import { collectQuantization } from "./collect.js";
import { swapConditions } from "../judging/placebos.js";
import type { Observation } from "../observation.js";
import { compareForced } from "./forced-tokens.js";
import { intervalsFigure } from "../judging/figures.js";
import { lossEffect, planPairs, points } from "../judging/loss-effect.js";
import { movedCases } from "./moved-cases.js";
import { pairConditions } from "../judging/pairs.js";
import { rounded, roundedMean } from "../judging/rounded.js";
import { decide, overallVerdict, unseenEffect } from "../judging/verdicts.js";
import { lookAt } from "../judging/sequence-bounds.js";
import { type Axis, axesOf } from "./axes.js";
import { quantizationSettings, type QuantizationCheckSettings } from "./settings.js";

/**
 * Does the variant that ships lose answers that the unquantised model gets right? Each axis is paired by case and held
 * against its margin. The divergence of forced tokens, where observations carry them, says where to look and decides
 * nothing: near-lossless variants of equal divergence differ in what they break (arXiv 2606.19558).
 */
export const quantizationCheck = defineCheck({
  name: "quantization",
  question:
    "Does the quantised variant lose tool calls, JSON or facts that the unquantised model gets right?",
  settings: quantizationSettings,
  needs: ["baseline", "cases", "evaluators"],
  sequence: ({ sequential, lookEvery: every, axisTags }) => (sequential ? { every, axisTags } : undefined),
  collect: collectQuantization,
  placebo: ({ baseline, candidate }) => swapConditions(baseline, candidate),
  judge(observations, settings) {
    const { alpha } = settings;
    const pairing = pairConditions(observations, settings.baseline, settings.candidate);
    const axes = axesOf(pairing.pairs, settings, lookAt(observations, settings));
    const hypotheses = decide(
      axes.map((axis) => {
        const { name, compared, margin } = axis;
        if (compared === undefined) return unseenEffect(name, { margin, alpha });
        const effect = lossEffect(name, compared, { margin, alpha });
        return { ...effect, isWithin: effect.isWithin && missingShareOf(axis) <= settings.maxMissingShare };
      }),
      alpha,
    );
    const isIncomplete = pairing.missingShare > settings.maxMissingShare;
    const verdict = overallVerdict(hypotheses, !isIncomplete);
    const forced = compareForced(pairing.pairs, 1 - alpha);
    return {
      verdict,
      summary: summaryOf(verdict, axes, hypotheses),
      ruleOfThumb: ruleOfThumb(axes, observations, settings),
      hypotheses,
      sampleSize: planPairs(
        axes.flatMap(({ name, compared, margin }) =>
          compared === undefined ? [] : [{ name, compared, margin }],
        ),
        settings,
      ),
      advice: verdict === "pass" ? [] : adviceFor(axes, hypotheses),
      movedCases: movedCases(axes),
      figures: [
        ...intervalsFigure("Loss by axis, candidate against baseline", "share", hypotheses),
        ...forced.figures,
      ],
      notes: [
        ...pairing.notes,
        axes.length === 0 && "no evaluator scored a case under both conditions",
        ...axes.flatMap((axis) => notesOf(axis, settings)),
        isIncomplete && `${points(pairing.missingShare)} % of cases lack an answer: nothing can pass`,
        ...forced.notes,
      ],
    };
  },
});

function missingShareOf({ scored, oneSided }: Axis): number {
  return oneSided / Math.max(1, scored.length + oneSided);
}

function notesOf(axis: Axis, settings: QuantizationCheckSettings): readonly string[] {
  const { name, compared, oneSided } = axis;
  const notes: string[] = [];
  if (compared !== undefined) {
    const { lost, gained, mcnemarPValue } = compared;
    const exact = mcnemarPValue === undefined ? "" : `, exact McNemar p = ${mcnemarPValue.toPrecision(2)}`;
    notes.push(`${name}: ${lost} cases lost, ${gained} gained of ${compared.count}${exact}`);
  }
  if (missingShareOf(axis) > settings.maxMissingShare)
    notes.push(`${name}: ${oneSided} cases were scored on one side only: the axis cannot pass`);
  return notes;
}

function summaryOf(verdict: Verdict, axes: readonly Axis[], hypotheses: readonly Hypothesis[]): string {
  if (axes.length === 0)
    return "Nothing was compared: there is no case that both variants answered and were scored on.";
  const worst = worstOf(hypotheses, verdict === "fail" ? "fail" : undefined);
  if (worst?.estimate === undefined) return "No axis could be compared.";
  const { name, estimate, interval, margin = 0 } = worst;
  const bounds = interval === undefined ? "no interval" : `${points(interval[0])} to ${points(interval[1])}`;
  const figures = `${name} lost ${points(estimate)} points (${bounds}; margin ${points(margin)})`;
  const passed = hypotheses.filter((one) => one.verdict === "pass").length;
  const rest = `${passed} of ${hypotheses.length} axes are shown to be within theirs`;
  if (verdict === "fail") return `The variant breaks what the baseline does: ${figures}; ${rest}.`;
  if (verdict === "pass") return `Every axis is within its margin; the nearest to it is ${figures}.`;
  return `Not decided: ${figures}; ${rest}.`;
}

/** The one farthest beyond its margin by its estimate. */
function worstOf(hypotheses: readonly Hypothesis[], verdict: Verdict | undefined): Hypothesis | undefined {
  return hypotheses
    .filter((one) => one.estimate !== undefined && (verdict === undefined || one.verdict === verdict))
    .toSorted((a, b) => excess(b) - excess(a))[0];
}

function excess({ estimate = 0, margin = 0 }: Hypothesis): number {
  return estimate - margin;
}

function ruleOfThumb(
  axes: readonly Axis[],
  observations: readonly Observation[],
  settings: QuantizationCheckSettings,
): RuleOfThumb {
  let tripped = false;
  const rows: (string | number | null)[][] = [];
  for (const { name, compared, isStructured } of axes) {
    if (compared === undefined) continue;
    const delta = compared.meanAfter - compared.meanBefore;
    // scores are sums of floats: two points are two points
    const blocks = settings.workload === "agent" && isStructured && delta <= -0.02 + 1e-9;
    if (blocks) tripped = true;
    rows.push([
      name,
      compared.count,
      rounded(compared.meanBefore),
      rounded(compared.meanAfter),
      rounded(100 * delta),
      blocks ? "blocks the release" : "",
    ]);
  }
  const preserved = observations.flatMap(({ condition, scores }) => {
    const value = scores[settings.preservationEvaluator] ?? undefined;
    return condition === settings.candidate && value !== undefined ? [value] : [];
  });
  if (preserved.length > 0) {
    const mean = roundedMean(preserved);
    rows.push(["meaning preserved, case by case", preserved.length, null, mean, null, ""]);
  }
  return {
    rule: "A drop of 2 points on tool calls or strict JSON blocks a tool-using agent; the same drop is accepted for chat. Free-form answers are expected within 1 point.",
    tripped,
    columns: ["axis", "cases", settings.baseline, settings.candidate, "delta (points)", ""],
    rows,
  };
}

function adviceFor(axes: readonly Axis[], hypotheses: readonly Hypothesis[]): readonly Advice[] {
  const failed = axes.filter((_axis, index) => hypotheses[index]?.verdict === "fail");
  const undecided = axes.length === 0 || hypotheses.some(({ verdict }) => verdict === "inconclusive");
  const advice: Advice[] = [];
  if (failed.some(({ isStructured }) => isStructured)) {
    advice.push(
      {
        knob: "--quantization",
        change:
          "serve a wider format (fp8 or int8 instead of int4; `octavo quantize --method gptq` or `awq` with a smaller --group-size instead of rtn)",
        because: "calls and JSON break first: one wrong token makes the whole answer wrong",
      },
      {
        knob: "response_format, tool_choice, strict",
        change: "constrain JSON and calls by grammar",
        because: "a grammar keeps the structure whatever the weights do; values can still be wrong",
      },
    );
  }
  if (failed.length > 0) {
    advice.push(
      {
        knob: "gateway route",
        change: `send ${failed.map(({ name }) => name).join(", ")} to the unquantised model and the rest to the variant`,
        because: "the other axes need not pay for the ones that broke",
      },
      {
        knob: "--kv-cache-dtype",
        change: "keep the KV cache in bf16 if it was narrowed too",
        because: "both roundings add up; test them one at a time",
      },
      {
        knob: "octavo compare",
        change: "compare baseline and variant token by token on the same cases",
        because: "it names the roles of the tokens whose first choice flips",
      },
    );
  }
  if (undecided)
    advice.push({
      knob: "cases",
      change: "run more cases on the axes that are not decided",
      because: "their intervals still reach past the margin",
    });
  return advice;
}
