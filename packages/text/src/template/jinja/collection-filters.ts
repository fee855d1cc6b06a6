import type { Arguments } from "./arguments.js";
import { getItem } from "./attributes.js";
import type { Filter, FilterContext } from "./filter.js";
import { applyBinary } from "./operators.js";
import { boundedText, printed } from "./printing.js";
import { templateError } from "./template-error.js";
import {
  compare,
  needDefined,
  equals,
  isHashable,
  isTrue,
  ItemStream,
  iterate,
  itemsOf,
  Tuple,
  typeName,
  Undefined,
  valueOr,
  type Value,
} from "./values.js";

/** Jinja's filters over sequences and mappings. */
export const collectionFilters: Readonly<Record<string, Filter>> = {
  length: lengthOf,
  count: lengthOf,
  list: (value) => [...iterate(value)],
  first: (value) => valueOr(iterate(value)[0], new Undefined("No first item, sequence was empty.")),
  last: (value) => {
    if (value instanceof ItemStream) throw templateError("'generator' object is not reversible");
    return valueOr(iterate(value).at(-1), new Undefined("No last item, sequence was empty."));
  },
  reverse: (value) => {
    if (typeof value === "string") return Array.from(value).toReversed().join("");
    const reversed = iterate(value).toReversed();
    return value instanceof ItemStream ? reversed : new ItemStream(() => reversed);
  },
  join: (value, args) => {
    const partOf = picker(args.allow("d", "attribute").get(1, "attribute"));
    const parts = iterate(value).map((item) => printed(partOf(item)));
    return boundedText(parts.join(printed(valueOr(args.get(0, "d"), ""))));
  },
  items: lazily((value) => {
    if (value instanceof Undefined) return [];
    if (!(value instanceof Map)) throw templateError("Can only get item pairs from a mapping.");
    return [...value].map(([key, item]) => new Tuple([key, item]));
  }),
  dictsort: (value, args) => dictSort(value, args.allow("case_sensitive", "by", "reverse")),
  sort: (value, args) => {
    const [attribute, caseSensitive] = [args.get(2, "attribute"), args.boolean(1, "case_sensitive", false)];
    const items = iterate(value);
    // Python keeps equal items in their order when it sorts in reverse.
    return args.boolean(0, "reverse", false)
      ? sortBy(items.toReversed(), attribute, caseSensitive).toReversed()
      : sortBy(items, attribute, caseSensitive);
  },
  unique: lazily((value, args) => {
    const keyOf = sortKeyOf(args.get(1, "attribute"), args.boolean(0, "case_sensitive", false));
    const seen: Value[] = [];
    return iterate(value).filter((item) => {
      const key = keyOf(item);
      if (!isHashable(key)) throw templateError(`unhashable type: '${typeName(key)}'`);
      if (seen.some((other) => equals(other, key))) return false;
      seen.push(key);
      return true;
    });
  }),
  min: (value, args) => extreme(value, args, -1),
  max: (value, args) => extreme(value, args, 1),
  sum: (value, args) => {
    const partOf = picker(args.get(0, "attribute"));
    const start = valueOr(args.get(1, "start"), 0);
    return iterate(value).reduce<Value>((total, item) => applyBinary("+", total, partOf(item)), start);
  },
  map: lazily((value, args, context) => (isTrue(value) ? iterate(value).map(mapper(args, context)) : [])),
  select: lazily((value, args, context) =>
    itemsIfAny(value).filter((item) => passes(item, args.positional, context)),
  ),
  reject: lazily((value, args, context) =>
    itemsIfAny(value).filter((item) => !passes(item, args.positional, context)),
  ),
  selectattr: lazily((value, args, context) =>
    itemsIfAny(value).filter((item) => attributePasses(item, args, context)),
  ),
  rejectattr: lazily((value, args, context) =>
    itemsIfAny(value).filter((item) => !attributePasses(item, args, context)),
  ),
  groupby: (value, args) => groupBy(value, args.need(0, "attribute"), args.get(1, "default")),
  batch: lazily((value, args) => {
    const size = atLeastOne(args.integer(0, "linecount"));
    const items = iterate(value);
    const fill = args.get(1, "fill_with");
    return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => {
      const row = items.slice(index * size, (index + 1) * size);
      return fill === undefined || fill === null
        ? row
        : [...row, ...Array.from({ length: size - row.length }, () => fill)];
    });
  }),
  slice: lazily((value, args) => {
    const slices = atLeastOne(args.integer(0, "slices"));
    const items = iterate(value);
    const size = Math.floor(items.length / slices);
    const larger = items.length % slices;
    const fill = valueOr(args.get(1, "fill_with"), null);
    return Array.from({ length: slices }, (_, index) => {
      const start = index * size + Math.min(index, larger);
      const column = items.slice(start, start + size + (index < larger ? 1 : 0));
      return fill === null || index < larger ? column : [...column, fill];
    });
  }),
};

/** A filter that is a generator in Jinja. */
function lazily(items: (value: Value, args: Arguments, context: FilterContext) => readonly Value[]): Filter {
  return (value, args, context) => new ItemStream(() => items(value, args, context));
}

/** What the filters that map and select go through: nothing for any false value, as for None. */
function itemsIfAny(value: Value): readonly Value[] {
  return isTrue(value) ? iterate(value) : [];
}

function atLeastOne(count: number): number {
  if (count < 1 || count > 100_000) throw templateError("A number of columns must be between 1 and 100000.");
  return count;
}

function lengthOf(value: Value): number {
  if (value instanceof Map) return value.size;
  if (itemsOf(value) === undefined && typeof value !== "string" && !(value instanceof Undefined)) {
    throw templateError(`object of type '${typeName(value)}' has no len()`);
  }
  return iterate(value).length;
}

/** `a.b.0` as the attribute arguments of filters have it; the item itself for None. */
function attributePath(item: Value, path: Value): Value {
  if (path === null) return item;
  if (typeof path !== "string") return getItem(item, path);
  return path
    .split(".")
    .reduce<Value>((value, part) => getItem(value, /^\d+$/.test(part) ? Number(part) : part), item);
}

function sortKey(value: Value, caseSensitive: boolean): Value {
  return typeof value === "string" && !caseSensitive ? value.toLowerCase() : value;
}

/** What a filter looks at in an item: the item, or what lies at the path; `fallback` where nothing does. */
function picker(attribute: Value | undefined, fallback?: Value): (item: Value) => Value {
  if (attribute === undefined) return (item) => item;
  return (item) => {
    const found = attributePath(item, attribute);
    return found instanceof Undefined && fallback !== undefined && fallback !== null ? fallback : found;
  };
}

function sortKeyOf(attribute: Value | undefined, caseSensitive: boolean): (item: Value) => Value {
  const partOf = picker(attribute);
  return (item) => sortKey(partOf(item), caseSensitive);
}

function sortBy(items: readonly Value[], attribute: Value | undefined, caseSensitive: boolean): Value[] {
  const paths = typeof attribute === "string" ? attribute.split(",") : [attribute];
  const keysOf = paths.map((path) => sortKeyOf(path, caseSensitive));
  const keyed = items.map((item) => ({ item, keys: keysOf.map((keyOf) => keyOf(item)) }));
  keyed.sort((left, right) => {
    for (const [index, key] of left.keys.entries()) {
      const other = right.keys[index]!;
      // undefined keys are equal, though they have no order
      if (!equals(key, other)) return compare(key, other);
    }
    return 0;
  });
  return keyed.map(({ item }) => item);
}

function dictSort(value: Value, args: Arguments): Value {
  if (!(value instanceof Map)) throw templateError("dictsort needs a mapping");
  const by = args.string(1, "by", "key");
  if (by !== "key" && by !== "value") throw templateError('You can only sort by either "key" or "value"');
  const pairs = [...value].map(([key, item]) => new Tuple([key, item]));
  const sorted = sortBy(pairs, by === "key" ? 0 : 1, args.boolean(0, "case_sensitive", false));
  return args.boolean(2, "reverse", false) ? sorted.toReversed() : sorted;
}

function extreme(value: Value, args: Arguments, sign: number): Value {
  const keyOf = sortKeyOf(args.get(1, "attribute"), args.boolean(0, "case_sensitive", false));
  const items = iterate(value);
  if (items.length === 0) return new Undefined("No aggregated item, sequence was empty.");
  return items.reduce((best, item) => (compare(keyOf(item), keyOf(best)) * sign > 0 ? item : best));
}

function mapper(args: Arguments, context: FilterContext): (item: Value) => Value {
  const attribute = args.named.get("attribute");
  if (args.positional.length === 0 && attribute !== undefined)
    return picker(attribute, args.named.get("default"));
  const name = args.string(0, "filter");
  return (item) => context.filter(name, item, args.positional.slice(1));
}

function passes(item: Value, args: readonly Value[], context: FilterContext): boolean {
  const [name, ...rest] = args;
  if (name === undefined) return isTrue(item);
  if (typeof name !== "string") throw templateError("A test must be given by name.");
  return context.test(name, item, rest);
}

function attributePasses(item: Value, args: Arguments, context: FilterContext): boolean {
  return passes(
    attributePath(needDefined(item), args.need(0, "attribute")),
    args.positional.slice(1),
    context,
  );
}

function groupBy(value: Value, attribute: Value, fallback: Value | undefined): Value {
  const keyOf = picker(attribute, fallback);
  const groups: { key: Value; items: Value[] }[] = [];
  const sorted = iterate(value)
    .map((item) => ({ key: keyOf(item), item }))
    .sort((left, right) => compare(sortKey(left.key, false), sortKey(right.key, false)));
  for (const { key, item } of sorted) {
    const last = groups.at(-1);
    if (last !== undefined && equals(sortKey(last.key, false), sortKey(key, false))) last.items.push(item);
    else groups.push({ key, items: [item] });
  }
  return groups.map(({ key, items }) => new Tuple([key, items]));
}
