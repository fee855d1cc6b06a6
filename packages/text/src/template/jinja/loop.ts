import { templateError } from "./template-error.js";
import { Callable, Undefined, valueOr, type Value } from "./values.js";

type LoopAttribute = (index: number, items: readonly Value[], depth: number) => Value;

const attributes: Readonly<Record<string, LoopAttribute>> = {
  index: (index) => index + 1,
  index0: (index) => index,
  revindex: (index, items) => items.length - index,
  revindex0: (index, items) => items.length - index - 1,
  first: (index) => index === 0,
  last: (index, items) => index === items.length - 1,
  length: (_, items) => items.length,
  depth: (_, __, depth) => depth,
  depth0: (_, __, depth) => depth - 1,
  previtem: (index, items) => valueOr(items[index - 1], new Undefined("there is no previous item")),
  nextitem: (index, items) => valueOr(items[index + 1], new Undefined("there is no next item")),
  cycle: (index) =>
    new Callable("cycle", (values) => {
      if (values.length === 0) throw templateError("no items for cycling given");
      return values[index % values.length]!;
    }),
};

/** What a for statement's `loop` variable says of the item at `index`. */
export function loopAttribute(
  name: string,
  index: number,
  items: readonly Value[],
  depth: number,
): Value | undefined {
  return Object.hasOwn(attributes, name) ? attributes[name]!(index, items, depth) : undefined;
}
