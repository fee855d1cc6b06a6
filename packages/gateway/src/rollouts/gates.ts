import { OctavoError } from "@octavo/protocol";

export const gateNames = [
  "answered",
  "json_valid",
  "json_schema",
  "tool_arguments",
  "finished",
  "not_empty",
  "no_refusal",
  "contains",
  "latency",
  "within_ms",
] as const;

export type GateName = (typeof gateNames)[number];

/** What an arm did with one request. */
export interface ArmOutcome {
  /** Whether it answered with success. */
  readonly isAnswered: boolean;
  readonly text: string;
  /** Arguments of each tool call, as the model wrote them. */
  readonly toolArguments: readonly string[];
  readonly finishReason: string | undefined;
  readonly durationMs: number;
}

interface GateSettings {
  readonly check: GateName;
  readonly ratio: number;
  readonly ms?: number | undefined;
  readonly text?: string | undefined;
}

/** Whether a value is as a schema says; compiled once. */
export type SchemaCheck = (value: unknown) => boolean;

/** From 0 to 1, of an answer by itself. */
type ScoreAnswer = (answer: ArmOutcome, settings: GateSettings, isValid: SchemaCheck) => number;
const scores: Readonly<Partial<Record<GateName, ScoreAnswer>>> = {
  answered: () => 1,
  json_valid: ({ text }) => Number(parsedJson(text) !== undefined),
  json_schema(answer, _, isValid) {
    const parsed = parsedJson(answer.text);
    return Number(parsed !== undefined && isValid(parsed.value));
  },
  tool_arguments: ({ toolArguments }) =>
    Number(
      toolArguments.every((text) => {
        const parsed = parsedJson(text);
        return parsed !== undefined && typeof parsed.value === "object" && parsed.value !== null;
      }),
    ),
  finished: ({ finishReason }) => Number(finishReason !== "length"),
  not_empty: ({ text, toolArguments }) => Number(text.trim() !== "" || toolArguments.length > 0),
  no_refusal: ({ text }) => Number(!refusal.test(text.slice(0, 300))),
  contains: ({ text }, settings) => Number(text.includes(settings.text!)),
  within_ms: ({ durationMs }, { ms }) => Number(durationMs <= ms!),
};

const refusal =
  /\bI(?:['\u2019]m| am) (?:sorry|unable)\b|\bI (?:can(?:not|['\u2019]t)|won['\u2019]t|am not able to) (?:help|assist|provide|do|answer|comply)\b/i;

function parsedJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/**
 * How much better the canary did, from -1 to 1; undefined where the pair says nothing to this gate. Arms are treated alike: an
 * arm that did not answer scores 0, whichever it is, so that outages of both favour neither. `latency` is whether the canary
 * took longer than `ratio` times the primary, so its mean below 0 says that half of all requests do.
 */
export function gateDifference(
  settings: GateSettings,
  primary: ArmOutcome,
  canary: ArmOutcome,
  isValid: SchemaCheck = refuseSchema,
): number | undefined {
  if (settings.check === "latency") {
    if (!primary.isAnswered || !canary.isAnswered) return undefined;
    return canary.durationMs > primary.durationMs * settings.ratio ? -1 : 1;
  }
  const score = scores[settings.check]!;
  const of = (answer: ArmOutcome): number => (answer.isAnswered ? score(answer, settings, isValid) : 0);
  return of(canary) - of(primary);
}

/** From 0 to 1, of an answer by itself. */
export function answerScore(
  check: Exclude<GateName, "latency" | "within_ms" | "contains">,
  answer: ArmOutcome,
  isValid: SchemaCheck = refuseSchema,
): number {
  return answer.isAnswered ? scores[check]!(answer, { check, ratio: 1 }, isValid) : 0;
}

function refuseSchema(): never {
  throw new OctavoError("internal_error", "A gate compares with a schema that was not compiled.");
}

/** What stages can tell: a mirror's answers are not read, and of a race only one answer is there. */
const observedBy: Readonly<Record<string, ReadonlySet<GateName>>> = {
  mirror: new Set(["answered", "latency", "within_ms"]),
  race: new Set(["answered"]),
};

export function isObserved(mode: string, check: GateName): boolean {
  return observedBy[mode]?.has(check) ?? true;
}
