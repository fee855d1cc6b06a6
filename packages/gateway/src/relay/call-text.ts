import { asRecord, asString, type JsonFields } from "@octavo/protocol";

/** A chat's call, or a piece of one: of a function with its arguments, or of a custom tool with its input. */
export interface CallText {
  readonly type: "function" | "custom";
  readonly name: string | undefined;
  readonly text: string | undefined;
}

const fields = { function: "arguments", custom: "input" } as const;

export function callText(call: JsonFields): CallText {
  const type = call["custom"] === undefined ? "function" : "custom";
  const made = asRecord(call[type]);
  return { type, name: asString(made["name"]), text: asString(made[fields[type]]) };
}

/** The call with another text; a piece of one without `call`. */
export function withCallText(type: CallText["type"], text: string, call: JsonFields = {}): JsonFields {
  return { ...call, [type]: { ...asRecord(call[type]), [fields[type]]: text } };
}
