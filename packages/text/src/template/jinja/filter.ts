import type { Arguments } from "./arguments.js";
import type { Value } from "./values.js";

/** What filters may call back into. */
export interface FilterContext {
  filter(name: string, operand: Value, args: readonly Value[]): Value;
  test(name: string, operand: Value, args: readonly Value[]): boolean;
}

export type Filter = (operand: Value, args: Arguments, context: FilterContext) => Value;
