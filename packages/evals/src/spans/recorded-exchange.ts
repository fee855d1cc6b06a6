import { asNumber, asObject, definedFields, OctavoError } from "@octavo/protocol";
import type { Answer } from "../answers/answer.js";
import type { CaseMessage, CaseParameters, EvalCase, ToolDefinition } from "../cases/eval-case.js";
import { parseTools } from "../datasets/case-tools.js";
import { type Fact, factNames } from "./fact-names.js";
import { numberOf, observationOf, ownerOfSpan, textOf } from "./from-spans.js";
import { recordedContent, type RecordedMessage } from "./recorded-content.js";
import type { SpanRecord } from "./span-record.js";

/** A recorded request as a case, and what it was answered. Nothing is known of a right answer. */
export interface RecordedExchange {
  readonly evalCase: EvalCase;
  readonly answer: Answer;
}

/**
 * The exchanges that a span recorded: one, or one for each prompt of a completion. Of several choices the first counts. What
 * tools answered in the conversation is the case's context. A string: why there is none.
 */
export function recordedExchanges(span: SpanRecord): readonly RecordedExchange[] | string {
  const content = recordedContent(span.facts);
  if (content === undefined) return "no content was recorded";
  const { asked, answered } = content;
  if (asked.some(({ hasMedia }) => hasMedia)) return "the request had media, which are not recorded";
  const tools = toolsOf(content.tools);
  if (typeof tools === "string") return tools;
  const isCompletion = operationsOfPrompts.some(([name, value]) => span.facts.get(name) === value);
  if (!isCompletion || asked.length === 1) return [exchange(span, "", asked, answered[0], tools)];
  if (answered.length % asked.length !== 0) return "the prompts of a completion and its answers do not match";
  const choices = answered.length / asked.length;
  return asked.map((prompt, index) =>
    exchange(span, `#${index}`, [prompt], answered[index * choices], tools),
  );
}

const operationsOfPrompts: readonly (readonly [string, string])[] = [
  ["gen_ai.operation.name", "text_completion"],
  ["operation", "text_completion"],
];

function exchange(
  span: SpanRecord,
  suffix: string,
  asked: readonly RecordedMessage[],
  answered: RecordedMessage | undefined,
  tools: readonly ToolDefinition[],
): RecordedExchange {
  const seen = observationOf(span, "");
  const id = `${seen.caseId}${suffix}`;
  const { tenant, cluster, tags, failureCode, promptTokens, completionTokens, cacheHitRatio } = seen;
  const context = asked
    .flatMap(({ toolResponses }) => toolResponses.map(({ response }) => response))
    .join("\n\n");
  const isMissing = answered === undefined || (failureCode !== undefined && !saysAnything(answered));
  const failure = isMissing
    ? { code: failureCode ?? "not_recorded", httpStatus: undefined, message: "the span has no answer" }
    : undefined;
  return {
    evalCase: {
      id,
      messages: asked.flatMap(caseMessages),
      tools,
      context: context === "" ? undefined : context,
      expected: {},
      parameters: parametersOf(span),
      tenant,
      cluster,
      tags: [...tags, `owner:${ownerOfSpan(span)}`],
      metadata: definedFields({ traceId: span.traceId, spanId: span.spanId }),
    },
    answer: {
      caseId: id,
      target: "recorded",
      model: textOf(span.facts, factNames.model),
      text: answered?.text ?? "",
      reasoning: answered?.reasoning === "" ? undefined : answered?.reasoning,
      toolCalls: answered?.toolCalls ?? [],
      finishReason: answered?.finishReason ?? seen.finishReason,
      usage: {
        promptTokens,
        completionTokens,
        cachedTokens:
          cacheHitRatio === undefined || promptTokens === undefined
            ? undefined
            : Math.round(cacheHitRatio * promptTokens),
      },
      timing: {
        scheduledEpochMs: span.startEpochMs,
        sentEpochMs: span.startEpochMs,
        durationMs: span.durationMs,
        pieceMs: seen.firstTokenMs === undefined ? [] : [seen.firstTokenMs],
      },
      serving: undefined,
      headers:
        span.traceId === undefined || span.spanId === undefined ? {} : traceHeader(span.traceId, span.spanId),
      failure,
    },
  };
}

function saysAnything({ text, reasoning, toolCalls }: RecordedMessage): boolean {
  return text !== "" || reasoning !== "" || toolCalls.length > 0;
}

/** Scores that are exported as events belong to this span. */
function traceHeader(traceId: string, spanId: string): Readonly<Record<string, string>> {
  return { traceresponse: `00-${traceId}-${spanId}-01` };
}

function caseMessages({ role, text, toolCalls, toolResponses }: RecordedMessage): readonly CaseMessage[] {
  if (toolResponses.length > 0)
    return toolResponses.map(({ id, response }) => ({
      role: "tool",
      content: response,
      ...(id === undefined ? {} : { tool_call_id: id }),
    }));
  const calls = toolCalls.map(({ id, name, arguments: given }) => ({
    id,
    type: "function" as const,
    function: { name, arguments: given },
  }));
  const known = knownRoles.find((other) => other === role) ?? "user";
  return [
    {
      role: known,
      content: text === "" && calls.length > 0 ? null : text,
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ];
}

const knownRoles = ["system", "developer", "user", "assistant", "tool"] as const;

function toolsOf(tools: readonly unknown[]): readonly ToolDefinition[] | string {
  if (tools.length === 0) return [];
  try {
    return parseTools(tools, "tools", { path: "span", unit: "line", number: 1 });
  } catch (thrown) {
    return `its tools cannot be read: ${OctavoError.from(thrown).message}`;
  }
}

function parametersOf({ facts }: SpanRecord): CaseParameters {
  const request = asObject(facts.get("request"));
  const number = (fact: Fact, field: string): number | undefined =>
    numberOf(facts, factNames[fact]) ?? asNumber(request?.[field]);
  return definedFields({
    maxTokens: number("requestMaxTokens", "maxTokens"),
    temperature: number("requestTemperature", "temperature"),
    seed: number("requestSeed", "seed"),
  });
}
