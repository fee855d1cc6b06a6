/**
 * What a scored token is for. Keys are keys wherever they stand; a tool argument is a value within a call's arguments.
 * Structure is what is neither content: JSON's punctuation, tool-call markup, end-of-turn tokens.
 */
export const roles = ["prose", "json_key", "json_value", "tool_argument", "structure"] as const;

export type Role = (typeof roles)[number];

export const roleNames: Readonly<Record<Role, string>> = {
  prose: "prose",
  json_key: "JSON key",
  json_value: "JSON value",
  tool_argument: "tool argument",
  structure: "structure",
};

/** Index into `roles`, as token tables keep it. */
export function roleIndex(role: Role): number {
  return roles.indexOf(role);
}
