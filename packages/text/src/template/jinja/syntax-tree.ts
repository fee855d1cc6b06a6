/** An expression and the template line it starts at. */
export type Expression = { readonly line: number } & (
  | { readonly kind: "constant"; readonly value: null | boolean | number | string }
  | { readonly kind: "float"; readonly value: number }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "list" | "tuple" | "concatenation"; readonly items: readonly Expression[] }
  | { readonly kind: "dict"; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: "attribute"; readonly object: Expression; readonly name: string }
  | { readonly kind: "item"; readonly object: Expression; readonly key: Expression }
  | {
      readonly kind: "slice";
      readonly object: Expression;
      readonly start: Expression | undefined;
      readonly stop: Expression | undefined;
      readonly step: Expression | undefined;
    }
  | { readonly kind: "call"; readonly callee: Expression; readonly args: CallArguments }
  | {
      readonly kind: "filter";
      /** undefined inside a filter block, where the block's text is the operand. */
      readonly operand: Expression | undefined;
      readonly name: string;
      readonly args: CallArguments;
    }
  | {
      readonly kind: "test";
      readonly operand: Expression;
      readonly name: string;
      readonly args: CallArguments;
    }
  | { readonly kind: "unary"; readonly operator: "not" | "-" | "+"; readonly operand: Expression }
  | {
      readonly kind: "binary";
      readonly operator: BinaryOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: "logical";
      readonly operator: "and" | "or";
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: "comparison";
      readonly first: Expression;
      readonly rest: readonly (readonly [ComparisonOperator, Expression])[];
    }
  | {
      readonly kind: "conditional";
      readonly test: Expression;
      readonly whenTrue: Expression;
      readonly otherwise: Expression | undefined;
    }
);

export type CallExpression = Extract<Expression, { kind: "call" }>;
export type FilterExpression = Extract<Expression, { kind: "filter" }>;

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

type Body = readonly Statement[];

/** A statement and the template line it starts at. */
export type Statement = { readonly line: number } & (
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly expression: Expression }
  | {
      readonly kind: "if";
      readonly branches: readonly { readonly test: Expression; readonly body: Body }[];
      readonly otherwise: Body;
    }
  | {
      readonly kind: "for";
      readonly target: AssignmentTarget;
      readonly iterable: Expression;
      readonly test: Expression | undefined;
      readonly recursive: boolean;
      readonly body: Body;
      readonly otherwise: Body;
    }
  | { readonly kind: "set"; readonly target: AssignmentTarget; readonly value: Expression }
  | {
      readonly kind: "set-block";
      readonly target: AssignmentTarget;
      readonly filters: readonly FilterExpression[];
      readonly body: Body;
    }
  | {
      readonly kind: "macro";
      readonly name: string;
      readonly parameters: readonly Parameter[];
      readonly body: Body;
    }
  | {
      readonly kind: "call-block";
      readonly call: CallExpression;
      readonly parameters: readonly Parameter[];
      readonly body: Body;
    }
  | { readonly kind: "filter-block"; readonly filters: readonly FilterExpression[]; readonly body: Body }
  | {
      readonly kind: "with";
      readonly assignments: readonly (readonly [AssignmentTarget, Expression])[];
      readonly body: Body;
    }
  | { readonly kind: "generation"; readonly body: Body }
  | { readonly kind: "break" | "continue" }
);
