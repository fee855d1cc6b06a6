import { templateError } from "./template-error.js";
import { Callable, Undefined, valueOr, type Value } from "./values.js";

/** What a for statement's `loop` variable says of the item at `index`. */
export function loopAttribute(
  name: string,
  index: number,
  items: readonly Value[],
  depth: number,
): Value | undefined {
  switch (name) {
    case "index":
      return index + 1;
    case "index0":
      return index;
    case "revindex":
      return items.length - index;
    case "revindex0":
      return items.length - index - 1;
    case "first":
      return index === 0;
    case "last":
      return index === items.length - 1;
    case "length":
      return items.length;
    case "depth":
      return depth;
    case "depth0":
      return depth - 1;
    case "previtem":
      return valueOr(items[index - 1], new Undefined("there is no previous item"));
    case "nextitem":
      return valueOr(items[index + 1], new Undefined("there is no next item"));
    case "cycle":
      return new Callable("cycle", (values) => {
        if (values.length === 0) throw templateError("no items for cycling given");
        return values[index % values.length]!;
      });
    default:
      return undefined;
  }
}
