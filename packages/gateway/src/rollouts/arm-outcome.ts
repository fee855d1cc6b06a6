import { asObjects, asRecord, asString, type JsonFields } from "@octavo/protocol";
import type { WholeAnswer } from "../exchange/stage.js";
import type { ArmOutcome } from "./gates.js";

/** The first choice's text, of a chat answer or a completion. */
export function contentText(json: JsonFields): string {
  const [choice] = asObjects(json["choices"]);
  return asString(asRecord(choice?.["message"])["content"]) ?? asString(choice?.["text"]) ?? "";
}

export function armOutcome({ status, json, durationMs }: WholeAnswer): ArmOutcome {
  const [choice] = asObjects(json["choices"]);
  const calls = asObjects(asRecord(choice?.["message"])["tool_calls"]);
  return {
    isAnswered: status >= 200 && status < 300,
    text: contentText(json),
    toolArguments: calls.map((call) => asString(asRecord(call["function"])["arguments"]) ?? ""),
    finishReason: asString(choice?.["finish_reason"]),
    durationMs,
  };
}

/** Outcome of an arm that did not answer. */
export function noOutcome(durationMs: number): ArmOutcome {
  return {
    isAnswered: false,
    text: "",
    toolArguments: [],
    finishReason: undefined,
    durationMs,
  };
}
