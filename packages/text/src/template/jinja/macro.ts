import type { Scope } from "./scope.js";
import type { Expression, Parameter, Statement } from "./syntax-tree.js";
import { templateError } from "./template-error.js";
import { Tuple, Undefined, valueOr, type NamedValues, type Value } from "./values.js";
import { nodesOf } from "./walk.js";

/** What a macro takes; it takes `varargs`, `kwargs` and `caller` when its body mentions them. */
interface MacroSignature {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly takesExtra: boolean;
  readonly takesExtraNamed: boolean;
  readonly takesCaller: boolean;
}

export function macroSignature(
  name: string,
  parameters: readonly Parameter[],
  body: readonly Statement[],
): MacroSignature {
  const names = new Set<string>();
  for (const node of nodesOf([parameters, body])) if (node.kind === "name") names.add(node.name);
  return {
    name,
    parameters,
    takesExtra: names.has("varargs"),
    takesExtraNamed: names.has("kwargs"),
    takesCaller: names.has("caller"),
  };
}

/** Sets a macro's parameters in the scope of its body; defaults are evaluated there, in order. */
export function bindMacroArguments(
  { name, parameters, takesExtra, takesExtraNamed, takesCaller }: MacroSignature,
  positional: readonly Value[],
  named: NamedValues,
  scope: Scope,
  evaluate: (fallback: Expression) => Value,
): void {
  const rest = new Map(named);
  for (const [index, parameter] of parameters.entries()) {
    const given = positional[index] === undefined ? rest.get(parameter.name) : positional[index];
    rest.delete(parameter.name);
    const missing = (): Value =>
      parameter.fallback === undefined
        ? new Undefined(`parameter '${parameter.name}' was not provided`)
        : evaluate(parameter.fallback);
    scope.set(parameter.name, given === undefined ? missing() : given);
  }
  if (takesCaller) {
    scope.set("caller", valueOr(rest.get("caller"), new Undefined("No caller defined")));
    rest.delete("caller");
  }
  if (takesExtraNamed) scope.set("kwargs", new Map<string, Value>(rest));
  else if (rest.size > 0)
    throw templateError(`macro '${name}' takes no keyword argument '${[...rest.keys()][0]!}'`);
  const extra = positional.slice(parameters.length);
  if (takesExtra) scope.set("varargs", new Tuple(extra));
  else if (extra.length > 0)
    throw templateError(`macro '${name}' takes not more than ${parameters.length} argument(s)`);
}
