import { isRecord } from "@octavo/protocol";
import type { AnsweredToolCall } from "../../answers/answer.js";
import { readJson } from "../json/read-json.js";

/** A call as the model wrote it, its arguments read. */
export interface MadeCall {
  readonly name: string;
  /** Undefined where they are no JSON object: `problem` says why. */
  readonly arguments: Readonly<Record<string, unknown>> | undefined;
  readonly problem: string | undefined;
}

export function readCall(call: AnsweredToolCall): MadeCall {
  // servers write no arguments as an empty string too
  const text = call.arguments.trim() === "" ? "{}" : call.arguments;
  const read = readJson(text);
  if (!("value" in read)) return { name: call.name, arguments: undefined, problem: read.problem };
  if (!isRecord(read.value)) return { name: call.name, arguments: undefined, problem: "it is no object" };
  return { name: call.name, arguments: read.value, problem: undefined };
}

/** Function names may not hold dots everywhere, so models are told `math_add` for `math.add`. */
export function sameFunction(a: string, b: string): boolean {
  return a.replaceAll(".", "_") === b.replaceAll(".", "_");
}
