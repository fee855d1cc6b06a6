import { type Arguments, callable } from "./arguments.js";
import { markupMethod } from "./markup.js";
import { represent } from "./printing.js";
import { stringMethod } from "./string-methods.js";
import { templateError } from "./template-error.js";
import {
  needDefined,
  dictGet,
  equals,
  isHashable,
  itemsOf,
  Loop,
  Markup,
  Namespace,
  plain,
  Tuple,
  typeName,
  Undefined,
  valueOr,
  type Callable,
  type Dict,
  type Value,
} from "./values.js";

/** Methods that would change a value, which Jinja's immutable sandbox refuses. */
const mutating = new Set(
  "append clear extend insert pop popitem remove reverse setdefault sort update add discard".split(" "),
);

/** `object.name`: an attribute or method, else an item of that key. Underscored names are refused. */
export function getAttribute(object: Value, name: string): Value {
  needDefined(object);
  if (name.startsWith("_")) return unsafe(object, name);
  const attribute = attributeOf(object, name);
  if (attribute !== undefined) return attribute;
  return valueOr(object instanceof Map ? object.get(name) : undefined, missing(object, name));
}

/** `object[key]`: an item, else an attribute of that name, else undefined, whatever the key is. */
export function getItem(object: Value, key: Value): Value {
  needDefined(object);
  if (object instanceof Markup && typeof plain(key) !== "string") {
    const found = getItem(object.text, key);
    return typeof found === "string" ? new Markup(found) : found;
  }
  const items = itemsOf(object);
  if (object instanceof Map) {
    const found = isHashable(key) ? dictGet(object, key) : undefined;
    if (found !== undefined) return found;
  } else if (
    (typeof key === "number" || typeof key === "boolean") &&
    (items !== undefined || typeof object === "string")
  ) {
    const sequence = items ?? Array.from(object as string);
    return valueOr(sequence.at(Number(key)), new Undefined(`${describe(object)} has no element ${key}`));
  }
  const name = plain(key);
  if (typeof name !== "string") return new Undefined(`${describe(object)} has no element ${represent(key)}`);
  if (name.startsWith("_")) return unsafe(object, name);
  return valueOr(attributeOf(object, name), missing(object, name));
}

/** An attribute or method alone, as the filter `attr` looks it up. */
export function ownAttribute(object: Value, name: string): Value {
  needDefined(object);
  return name.startsWith("_")
    ? unsafe(object, name)
    : valueOr(attributeOf(object, name), missing(object, name));
}

function missing(object: Value, name: string): Undefined {
  return new Undefined(`'${describe(object)}' has no attribute '${name}'`);
}

function describe(object: Value): string {
  return object === null ? "None" : `${typeName(object)} object`;
}

/** Undefined, so that using it fails with the reason, as in Jinja's sandbox. */
function unsafe(object: Value, name: string): Undefined {
  return new Undefined(`access to attribute '${name}' of '${typeName(object)}' object is unsafe.`);
}

function attributeOf(object: Value, name: string): Value | undefined {
  if (typeof object === "string") return stringMethod(object, name);
  if (object instanceof Markup) return markupMethod(object, name);
  if (object instanceof Namespace) return object.attributes.get(name);
  if (object instanceof Loop) return object.attributes(name);
  const items = itemsOf(object);
  if (object instanceof Map || items !== undefined) {
    if (mutating.has(name)) return unsafe(object, name);
    return object instanceof Map ? method(dictMethods, object, name) : method(listMethods, items!, name);
  }
  return undefined;
}

type Methods<Self> = Readonly<Record<string, (self: Self, args: Arguments) => Value>>;

const dictMethods: Methods<Dict> = {
  items: (dict) => [...dict].map(([key, value]) => new Tuple([key, value])),
  keys: (dict) => [...dict.keys()],
  values: (dict) => [...dict.values()],
  copy: (dict) => new Map(dict),
  get: (dict, args) => valueOr(dictGet(dict, args.need(0, "key")), valueOr(args.get(1, "default"), null)),
};

const listMethods: Methods<readonly Value[]> = {
  index: (items, args) => {
    const wanted = args.need(0, "value");
    const at = items.findIndex((item) => equals(item, wanted));
    if (at < 0) throw templateError(`${represent(wanted)} is not in list`);
    return at;
  },
  count: (items, args) => {
    const wanted = args.need(0, "value");
    return items.filter((item) => equals(item, wanted)).length;
  },
  copy: (items) => [...items],
};

function method<Self>(methods: Methods<Self>, self: Self, name: string): Callable | undefined {
  const call = Object.hasOwn(methods, name) ? methods[name] : undefined;
  return call === undefined ? undefined : callable(name, (args) => call(self, args));
}
