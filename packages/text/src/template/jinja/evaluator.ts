import { OctavoError } from "@octavo/protocol/errors";
import { Arguments } from "./arguments.js";
import { getAttribute, getItem } from "./attributes.js";
import type { FilterContext } from "./filter.js";
import { filterNamed } from "./filters.js";
import { applyBinary, applyComparison, applyUnary, slice } from "./operators.js";
import { boundedText, maxTextLength, printed } from "./printing.js";
import type {
  CallArguments,
  Expression,
  FilterExpression,
  Parameter,
  Statement,
  AssignmentTarget,
} from "./syntax-tree.js";
import { templateError } from "./template-error.js";
import { loopAttribute } from "./loop.js";
import { spend } from "../../work.js";
import { listWork, TemplateWorkError, textWork } from "../template-work.js";
import { bindMacroArguments, macroSignature } from "./macro.js";
import { Scope } from "./scope.js";
import { testNamed } from "./tests.js";
import {
  Callable,
  needDefined,
  dictSet,
  Float,
  isTrue,
  iterate,
  Loop,
  Namespace,
  Tuple,
  typeName,
  Undefined,
  equals,
  valueOr,
  type Dict,
  type NamedValues,
  type Value,
} from "./values.js";

const maxCallDepth = 200;

type Signal = "break" | "continue" | undefined;

/** Runs one template once, with Python's semantics, within bounds of work, depth and size. */
export class TemplateEvaluator implements FilterContext {
  readonly #global: Scope;
  #output: string[] = [];
  #outputLength = 0;
  #callDepth = 0;
  #line = 1;

  constructor(variables: Iterable<readonly [string, Value]>) {
    this.#global = new Scope(undefined, variables);
  }

  render(template: readonly Statement[]): string {
    try {
      this.#run(template, new Scope(this.#global));
      return this.#output.join("");
    } catch (error) {
      if (error instanceof OctavoError && error.code === "template_error") {
        throw error instanceof TemplateWorkError || / \(template line \d+\)$/.test(error.message)
          ? error
          : templateError(error.message, this.#line, error);
      }
      if (error instanceof RangeError)
        throw templateError(
          "The template calls itself too deeply or builds too large a value.",
          this.#line,
          error,
        );
      throw error;
    }
  }

  #step(line: number): void {
    this.#line = line;
    spend(1);
  }

  #write(text: string): void {
    spend(textWork(text));
    this.#output.push(text);
    this.#outputLength += text.length;
    if (this.#outputLength > maxTextLength)
      throw templateError(`The template writes more than ${maxTextLength} characters.`);
  }

  /** Runs statements and gives what they wrote instead of writing it. */
  #capture(body: readonly Statement[], scope: Scope): string {
    const output = this.#output;
    this.#output = [];
    try {
      this.#run(body, scope);
      return this.#output.join("");
    } finally {
      this.#output = output;
    }
  }

  #run(body: readonly Statement[], scope: Scope): Signal {
    for (const statement of body) {
      this.#step(statement.line);
      const signal = this.#statement(statement, scope);
      if (signal !== undefined) return signal;
    }
    return undefined;
  }

  #statement(statement: Statement, scope: Scope): Signal {
    switch (statement.kind) {
      case "text":
        this.#write(statement.text);
        return undefined;
      case "output":
        this.#write(printed(this.#evaluate(statement.expression, scope)));
        return undefined;
      case "if": {
        const branch = statement.branches.find(({ test }) => isTrue(this.#evaluate(test, scope)));
        return this.#run(branch?.body ?? statement.otherwise, scope);
      }
      case "for":
        this.#for(statement, this.#evaluate(statement.iterable, scope), scope, 1);
        return undefined;
      case "set":
        this.#assign(statement.target, this.#evaluate(statement.value, scope), scope);
        return undefined;
      case "set-block": {
        const text = this.#capture(statement.body, new Scope(scope));
        this.#assign(statement.target, this.#applyFilters(statement.filters, text, scope), scope);
        return undefined;
      }
      case "macro":
        scope.set(statement.name, this.#macro(statement.name, statement.parameters, statement.body, scope));
        return undefined;
      case "call-block": {
        const caller = this.#macro("caller", statement.parameters, statement.body, scope);
        const { args } = statement.call;
        const callee = this.#evaluate(statement.call.callee, scope);
        this.#write(printed(this.#call(callee, args, scope, new Map([["caller", caller]]))));
        return undefined;
      }
      case "filter-block":
        this.#write(
          printed(
            this.#applyFilters(statement.filters, this.#capture(statement.body, new Scope(scope)), scope),
          ),
        );
        return undefined;
      case "with": {
        const inner = new Scope(scope);
        for (const [target, value] of statement.assignments)
          this.#assign(target, this.#evaluate(value, scope), inner);
        return this.#run(statement.body, inner);
      }
      case "generation":
        this.#run(statement.body, new Scope(scope));
        return undefined;
      case "break":
      case "continue":
        return statement.kind;
    }
  }

  #for(statement: Extract<Statement, { kind: "for" }>, iterable: Value, scope: Scope, depth: number): void {
    if (depth > maxCallDepth) throw templateError("A recursive loop goes too deep.");
    let items = iterate(iterable);
    const { target, test } = statement;
    if (test !== undefined) {
      items = items.filter((item) => {
        this.#step(statement.line);
        const inner = new Scope(scope);
        this.#assign(target, item, inner);
        return isTrue(this.#evaluate(test, inner));
      });
    }
    const recurse = statement.recursive
      ? (inner: Value): Value => {
          const output = this.#output;
          this.#output = [];
          this.#for(statement, inner, scope, depth + 1);
          const text = this.#output.join("");
          this.#output = output;
          return text;
        }
      : undefined;
    let last: readonly Value[] | undefined;
    for (const [index, item] of items.entries()) {
      this.#step(statement.line);
      const inner = new Scope(scope);
      const attributes = (name: string): Value | undefined => {
        if (name !== "changed") return loopAttribute(name, index, items, depth);
        return new Callable("changed", (values) => {
          const isSame =
            last !== undefined &&
            last.length === values.length &&
            last.every((value, at) => equals(value, values[at]!));
          last = values;
          return !isSame;
        });
      };
      inner.set("loop", new Loop(attributes, recurse));
      this.#assign(target, item, inner);
      if (this.#run(statement.body, inner) === "break") break;
    }
    if (items.length === 0) this.#run(statement.otherwise, new Scope(scope));
  }

  #assign(target: AssignmentTarget, value: Value, scope: Scope): void {
    switch (target.kind) {
      case "name":
        scope.set(target.name, value);
        return;
      case "namespace": {
        const object = scope.get(target.object);
        if (!(object instanceof Namespace))
          throw templateError("cannot assign attribute on non-namespace object");
        if (target.attribute.startsWith("_"))
          throw templateError(`access to attribute '${target.attribute}' is unsafe.`);
        object.attributes.set(target.attribute, value);
        return;
      }
      case "tuple": {
        const items = iterate(value);
        if (items.length !== target.items.length) {
          const what = items.length < target.items.length ? "not enough values" : "too many values";
          throw templateError(`${what} to unpack (expected ${target.items.length}, got ${items.length})`);
        }
        for (const [index, item] of target.items.entries()) this.#assign(item, items[index]!, scope);
      }
    }
  }

  #macro(name: string, parameters: readonly Parameter[], body: readonly Statement[], scope: Scope): Callable {
    const signature = macroSignature(name, parameters, body);
    return new Callable(name, (positional, named) => {
      const inner = new Scope(scope);
      bindMacroArguments(signature, positional, named, inner, (fallback) => this.#evaluate(fallback, inner));
      return this.#deeper(() => this.#capture(body, inner));
    });
  }

  #deeper<Result>(run: () => Result): Result {
    if (++this.#callDepth > maxCallDepth) throw templateError("The template calls itself too deeply.");
    try {
      return run();
    } finally {
      this.#callDepth--;
    }
  }

  #evaluate(expression: Expression, scope: Scope): Value {
    this.#step(expression.line);
    switch (expression.kind) {
      case "constant":
        return expression.value;
      case "float":
        return new Float(expression.value);
      case "name":
        return valueOr(scope.get(expression.name), new Undefined(`'${expression.name}' is undefined`));
      case "list":
        return expression.items.map((item) => this.#evaluate(item, scope));
      case "tuple":
        return new Tuple(expression.items.map((item) => this.#evaluate(item, scope)));
      case "dict": {
        const dict: Dict = new Map();
        for (const [key, value] of expression.entries)
          dictSet(dict, this.#evaluate(key, scope), this.#evaluate(value, scope));
        return dict;
      }
      case "concatenation":
        return boundedText(expression.items.map((item) => printed(this.#evaluate(item, scope))).join(""));
      case "attribute": {
        const object = this.#evaluate(expression.object, scope);
        // what is called then is a method, which goes through the text
        if (typeof object === "string") spend(listWork(object.length));
        return this.#at(expression.line, getAttribute(object, expression.name));
      }
      case "item": {
        const object = this.#evaluate(expression.object, scope);
        return this.#at(expression.line, getItem(object, this.#evaluate(expression.key, scope)));
      }
      case "slice": {
        const part = (bound: Expression | undefined): Value =>
          bound === undefined ? null : this.#evaluate(bound, scope);
        return slice(
          this.#evaluate(expression.object, scope),
          part(expression.start),
          part(expression.stop),
          part(expression.step),
        );
      }
      case "call":
        return this.#call(this.#evaluate(expression.callee, scope), expression.args, scope);
      case "filter":
        return this.#filter(expression, this.#evaluate(expression.operand!, scope), scope);
      case "test": {
        const operand = this.#evaluate(expression.operand, scope);
        const [positional, named] = this.#arguments(expression.args, scope);
        return testNamed(expression.name)(operand, new Arguments(expression.name, positional, named));
      }
      case "unary":
        return applyUnary(expression.operator, this.#evaluate(expression.operand, scope));
      case "binary":
        return applyBinary(
          expression.operator,
          this.#evaluate(expression.left, scope),
          this.#evaluate(expression.right, scope),
        );
      case "logical": {
        const left = this.#evaluate(expression.left, scope);
        return isTrue(left) === (expression.operator === "and")
          ? this.#evaluate(expression.right, scope)
          : left;
      }
      case "comparison":
        return this.#comparison(expression, scope);
      case "conditional":
        if (isTrue(this.#evaluate(expression.test, scope))) return this.#evaluate(expression.whenTrue, scope);
        return expression.otherwise === undefined
          ? new Undefined("the inline if-expression evaluated to false and no else section was defined.")
          : this.#evaluate(expression.otherwise, scope);
    }
  }

  /** Failures later in the same expression are reported at the line of its last part. */
  #at(line: number, value: Value): Value {
    this.#line = line;
    return value;
  }

  #comparison(expression: Extract<Expression, { kind: "comparison" }>, scope: Scope): Value {
    let left = this.#evaluate(expression.first, scope);
    for (const [operator, operand] of expression.rest) {
      const right = this.#evaluate(operand, scope);
      if (!applyComparison(operator, left, right)) return false;
      left = right;
    }
    return true;
  }

  #arguments(args: CallArguments, scope: Scope): [Value[], Map<string, Value>] {
    const positional = args.positional.map((argument) => this.#evaluate(argument, scope));
    if (args.spread !== undefined) positional.push(...iterate(this.#evaluate(args.spread, scope)));
    const named = new Map(args.named.map(([name, value]) => [name, this.#evaluate(value, scope)]));
    if (args.namedSpread !== undefined) {
      const spread = this.#evaluate(args.namedSpread, scope);
      if (!(spread instanceof Map))
        throw templateError(`argument after ** must be a mapping, not ${typeName(spread)}`);
      for (const [name, value] of spread) named.set(String(name), value);
    }
    return [positional, named];
  }

  #call(callee: Value, args: CallArguments, scope: Scope, extra: NamedValues = new Map()): Value {
    const [positional, named] = this.#arguments(args, scope);
    for (const [name, value] of extra) named.set(name, value);
    if (callee instanceof Callable) return callee.call(positional, named);
    if (callee instanceof Loop && callee.recurse !== undefined)
      return callee.recurse(valueOr(positional[0], []));
    throw templateError(`'${typeName(needDefined(callee))}' object is not callable`);
  }

  #filter(expression: FilterExpression, operand: Value, scope: Scope): Value {
    const [positional, named] = this.#arguments(expression.args, scope);
    if (typeof operand === "string") spend(listWork(operand.length));
    const result = filterNamed(expression.name)(
      operand,
      new Arguments(expression.name, positional, named),
      this,
    );
    if (typeof result === "string") spend(textWork(result));
    return result;
  }

  #applyFilters(filters: readonly FilterExpression[], text: string, scope: Scope): Value {
    return filters.reduce<Value>((value, filter) => this.#filter(filter, value, scope), text);
  }

  filter(name: string, operand: Value, args: readonly Value[]): Value {
    this.#step(this.#line);
    return filterNamed(name)(operand, new Arguments(name, args, new Map()), this);
  }

  test(name: string, operand: Value, args: readonly Value[]): boolean {
    this.#step(this.#line);
    return testNamed(name)(operand, new Arguments(name, args, new Map()));
  }
}
