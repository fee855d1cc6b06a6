/** Expressions and statements carry the template line they start at. */
export type Expression =
  | { readonly kind: "constant"; readonly line: number; readonly value: null | boolean | number | string }
  | { readonly kind: "float"; readonly line: number; readonly value: number }
  | { readonly kind: "name"; readonly line: number; readonly name: string }
  | {
      readonly kind: "list" | "tuple" | "concatenation";
      readonly line: number;
      readonly items: readonly Expression[];
    }
  | {
      readonly kind: "dict";
      readonly line: number;
      readonly entries: readonly (readonly [Expression, Expression])[];
    }
  | { readonly kind: "attribute"; readonly line: number; readonly object: Expression; readonly name: string }
  | { readonly kind: "item"; readonly line: number; readonly object: Expression; readonly key: Expression }
  | {
      readonly kind: "slice";
      readonly line: number;
      readonly object: Expression;
      readonly start: Expression | undefined;
      readonly stop: Expression | undefined;
      readonly step: Expression | undefined;
    }
  | {
      readonly kind: "call";
      readonly line: number;
      readonly callee: Expression;
      readonly args: CallArguments;
    }
  | {
      readonly kind: "filter";
      readonly line: number;
      /** undefined inside a filter block, where the block's text is the operand. */
      readonly operand: Expression | undefined;
      readonly name: string;
      readonly args: CallArguments;
    }
  | {
      readonly kind: "test";
      readonly line: number;
      readonly operand: Expression;
      readonly name: string;
      readonly args: CallArguments;
    }
  | {
      readonly kind: "unary";
      readonly line: number;
      readonly operator: "not" | "-" | "+";
      readonly operand: Expression;
    }
  | {
      readonly kind: "binary";
      readonly line: number;
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: "logical";
      readonly line: number;
      readonly operator: "and" | "or";
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: "comparison";
      readonly line: number;
      readonly first: Expression;
      readonly rest: readonly (readonly [ComparisonOperator, Expression])[];
    }
  | {
      readonly kind: "conditional";
      readonly line: number;
      readonly test: Expression;
      readonly whenTrue: Expression;
      readonly otherwise: Expression | undefined;
    };

export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**";
export type ComparisonOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in";

export interface CallArguments {
  readonly positional: readonly Expression[];
  readonly named: readonly (readonly [string, Expression])[];
  readonly spread: Expression | undefined;
  readonly namedSpread: Expression | undefined;
}

/** What can be assigned to. */
export type AssignmentTarget =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "namespace"; readonly object: string; readonly attribute: string }
  | { readonly kind: "tuple"; readonly items: readonly AssignmentTarget[] };

export interface Parameter {
  readonly name: string;
  readonly fallback: Expression | undefined;
}

export type Statement =
  | { readonly kind: "text"; readonly line: number; readonly text: string }
  | { readonly kind: "output"; readonly line: number; readonly expression: Expression }
  | {
      readonly kind: "if";
      readonly line: number;
      readonly branches: readonly { readonly test: Expression; readonly body: readonly Statement[] }[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "for";
      readonly line: number;
      readonly target: AssignmentTarget;
      readonly iterable: Expression;
      readonly test: Expression | undefined;
      readonly recursive: boolean;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "set";
      readonly line: number;
      readonly target: AssignmentTarget;
      readonly value: Expression;
    }
  | {
      readonly kind: "set-block";
      readonly line: number;
      readonly target: AssignmentTarget;
      readonly filters: readonly Extract<Expression, { kind: "filter" }>[];
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "macro";
      readonly line: number;
      readonly name: string;
      readonly parameters: readonly Parameter[];
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "call-block";
      readonly line: number;
      readonly call: Extract<Expression, { kind: "call" }>;
      readonly parameters: readonly Parameter[];
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "filter-block";
      readonly line: number;
      readonly filters: readonly Extract<Expression, { kind: "filter" }>[];
      readonly body: readonly Statement[];
    }
  | {
      readonly kind: "with";
      readonly line: number;
      readonly assignments: readonly (readonly [AssignmentTarget, Expression])[];
      readonly body: readonly Statement[];
    }
  | { readonly kind: "generation"; readonly line: number; readonly body: readonly Statement[] }
  | { readonly kind: "break" | "continue"; readonly line: number };
