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
  "first_token",
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
  /** Undefined where it was not measured, such as for a copy whose answer was not streamed. */
  readonly firstByteMs: number | undefined;
  readonly durationMs: number;
}

export interface GateSettings {
  readonly check: GateName;
  readonly ratio: number;
  readonly ms?: number | undefined;
  readonly text?: string | undefined;
}

/** Whether a value is as a schema says; compiled once. */
export type SchemaCheck = (value: unknown) => boolean;

/** From 0 to 1, of an answer by itself. */
type ScoreAnswer = (answer: ArmOutcome, settings: GateSettings, isValid: SchemaCheck) => number;
/** Times of which the shorter is better; undefined leaves the pair out. */
type ReadTime = (answer: ArmOutcome) => number | undefined;

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

const times: Readonly<Partial<Record<GateName, ReadTime>>> = {
  latency: ({ durationMs }) => durationMs,
  first_token: ({ firstByteMs }) => firstByteMs,
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
 * arm that did not answer scores 0, whichever it is, so that outages of both favour neither. A time gate is whether the canary
 * took longer than `ratio` times the primary, so its mean below 0 says that half of all requests do.
 */
export function gateDifference(
  settings: GateSettings,
  primary: ArmOutcome,
  canary: ArmOutcome,
  isValid: SchemaCheck = refuseSchema,
): number | undefined {
  const time = times[settings.check];
  if (time !== undefined) {
    if (!primary.isAnswered || !canary.isAnswered) return undefined;
    const [ours, theirs] = [time(primary), time(canary)];
    if (ours === undefined || theirs === undefined) return undefined;
    return theirs > ours * settings.ratio ? -1 : 1;
  }
  const score = scores[settings.check]!;
  const of = (answer: ArmOutcome): number => (answer.isAnswered ? score(answer, settings, isValid) : 0);
  return of(canary) - of(primary);
}

function refuseSchema(): never {
  throw new OctavoError("internal_error", "A gate compares with a schema that was not compiled.");
}
