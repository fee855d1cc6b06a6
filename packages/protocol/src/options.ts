import { nearestName, OctavoError } from "./errors.js";

/** The kind of an option's value: how text becomes one, which are accepted, and how help writes one. */
export interface OptionType<T> {
  /** What an error says was expected. */
  readonly expects: string;
  /** Whether the flag may be given several times. */
  readonly isList?: boolean;
  /** All values that there are. */
  readonly choices?: readonly string[];
  accepts(value: unknown): boolean;
  /** Reads a flag's text; `earlier` is the value so far of a list. Throws `invalid_option`. */
  parse(text: string, earlier: T | undefined): T;
  show(value: T): string;
}

/** What a row may say beside its type, flag and help. */
export interface RowDetails<T> {
  /** What the option is when nothing is given. */
  readonly default?: T;
  /** What happens without it, where the default does not say so. */
  readonly defaultText?: string;
  readonly isRequired?: true;
  /** Switches only: the flag sets it to false. */
  readonly turnsOff?: true;
  /** Other names of the flag. */
  readonly aliases?: readonly string[];
  /** Environment variables that are read, in this order, where no flag is given; lists are separated by commas. */
  readonly environment?: readonly string[];
  /** Heading in help. */
  readonly group?: string;
}

/** One option, wherever it is taken: a library call, a server, a command. Flags, help, checks, defaults and documents derive from it. */
export interface OptionRow<T = unknown> extends RowDetails<T> {
  readonly type: OptionType<T>;
  /**
   * The command-line flag, by vLLM's name where vLLM has one: `--seed <n>`, `--names <name...>` for several values at once,
   * `--[no-]cache` for a switch with two flags. Undefined for an option that only libraries take.
   */
  readonly flag: string | undefined;
  /** One line; choices and default are added to it. */
  readonly help: string;
}

export type OptionRows = Readonly<Record<string, OptionRow>>;

type ValueOf<Row> = Row extends { readonly type: OptionType<infer T> } ? T : never;

/** What a caller may give. */
export type OptionsOf<Rows> = { readonly [Key in keyof Rows]?: ValueOf<Rows[Key]> | undefined };

/** What the callee has: defaults are filled in. */
export type ResolvedOptions<Rows> = {
  readonly [Key in keyof Rows]: Rows[Key] extends
    | { readonly default: unknown }
    | { readonly isRequired: true }
    ? ValueOf<Rows[Key]>
    : ValueOf<Rows[Key]> | undefined;
};

/** Puts rows under one heading of help. */
export function inGroup<Rows extends OptionRows>(group: string, rows: Rows): Rows {
  return Object.fromEntries(Object.entries(rows).map(([key, row]) => [key, { group, ...row }])) as Rows;
}

/** Fills in defaults. Throws `invalid_option` for the first value that its row does not accept; `paramOf` names it in `param`. */
export function resolveOptions<Rows extends OptionRows>(
  rows: Rows,
  options: OptionsOf<Rows>,
  paramOf: (key: string) => string = (key) => key,
): ResolvedOptions<Rows> {
  const values: Readonly<Record<string, unknown>> = options;
  return Object.fromEntries(
    Object.entries(rows).map(([key, row]) => {
      const value = values[key] ?? row.default;
      if (value !== undefined && !row.type.accepts(value)) {
        const message = `${key}: expected ${row.type.expects}, got ${shown(value)}`;
        throw new OctavoError("invalid_option", message, { param: paramOf(key) });
      }
      return [key, value];
    }),
  ) as ResolvedOptions<Rows>;
}

/** The values that belong to `rows`, from an object that may hold others. */
export function pickOptions<Rows extends OptionRows>(rows: Rows, options: OptionsOf<Rows>): OptionsOf<Rows> {
  const values: Readonly<Record<string, unknown>> = options;
  return Object.fromEntries(Object.keys(rows).map((key) => [key, values[key]])) as OptionsOf<Rows>;
}

type Given<T> = { readonly [Key in keyof T]?: Exclude<T[Key], undefined> };

/** The fields that are not undefined, for callees whose optional fields may not be. */
export function given<T extends object>(values: T): Given<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>;
}

/** Throws `invalid_option` for a key that is not among the known ones, with the nearest of them. */
export function checkOptionNames(options: object, known: readonly string[], what: string): void {
  const stranger = Object.keys(options).find((key) => !known.includes(key));
  if (stranger === undefined) return;
  const nearest = nearestName(stranger, known);
  const hint = nearest === undefined ? "" : `; did you mean ${nearest}?`;
  throw new OctavoError("invalid_option", `${what} has no option ${shown(stranger)}${hint}`, {
    param: stranger,
  });
}

/** The default as help writes it; undefined where there is nothing to say. */
export function defaultTextOf({ type, default: value, defaultText }: OptionRow): string | undefined {
  if (defaultText !== undefined || value === undefined) return defaultText;
  return type.show(value) || undefined;
}

/** Range of a number. */
interface Range {
  readonly min?: number | undefined;
  /** Instead of `min`: itself out. */
  readonly above?: number | undefined;
  readonly max?: number | undefined;
}

interface Numeric {
  readonly noun: string;
  readonly isKind: (value: unknown) => boolean;
  readonly read: (written: string) => number;
  readonly show: (value: number) => string;
  /** Where a row does not say. */
  readonly range?: Range;
}

type NumericType = (range?: Range) => OptionType<number>;

function numeric({ noun, isKind, read, show, range: usual = {} }: Numeric): NumericType {
  return ({ min = usual.min, above, max = usual.max } = {}) => {
    const expects = `${noun}${rangeText({ min, above, max }, show)}`;
    const accepts = (value: unknown): boolean =>
      isKind(value) &&
      Number(value) >= (min ?? Number.NEGATIVE_INFINITY) &&
      Number(value) > (above ?? Number.NEGATIVE_INFINITY) &&
      Number(value) <= (max ?? Number.POSITIVE_INFINITY);
    const parse = (written: string): number => {
      const value = read(written.trim());
      return accepts(value) ? value : refuse(expects, written);
    };
    return { expects, accepts, parse, show };
  };
}

const countSuffixes: Readonly<Record<string, number>> = { k: 1000, K: 1024, m: 1_000_000, M: 2 ** 20 };

/** Whole numbers; as text also with vLLM's suffixes: "4k" is 4000, "4K" is 4096. */
const integer = numeric({
  noun: "an integer",
  isKind: Number.isSafeInteger,
  read: (written) => {
    const [, digits, suffix = ""] = /^(-?\d+)([kKmM]?)$/.exec(written) ?? [];
    return digits === undefined ? Number.NaN : Number(digits) * (countSuffixes[suffix] ?? 1);
  },
  show: String,
});

const number = numeric({
  noun: "a number",
  isKind: Number.isFinite,
  read: (written) => (written === "" ? Number.NaN : Number(written)),
  show: String,
});

/** Bytes; as text "4GiB", "512MiB", "2g" or plain bytes. Units are powers of 1024. */
const bytes = numeric({
  noun: "a size in bytes, or as text such as 4GiB or 512MiB,",
  isKind: Number.isFinite,
  read: (written) => {
    const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(written) ?? [];
    return Math.floor(Number(amount) * 1024 ** " kmgt".indexOf(unit.toLowerCase() || " "));
  },
  show: formatBinaryBytes,
  range: { min: 0 },
});

/** Milliseconds that a timer can wait, rounded down to whole days; as text in seconds. */
const seconds = numeric({
  noun: "a time",
  isKind: Number.isSafeInteger,
  read: (written) => (written === "" ? Number.NaN : Math.round(Number(written) * 1000)),
  show: (value) => `${value / 1000} s`,
  range: { min: 0, max: 24 * 86_400_000 },
});

function rangeText({ min, above, max }: Range, show: (value: number) => string): string {
  if (above !== undefined)
    return ` above ${show(above)}${max === undefined ? "" : ` and at most ${show(max)}`}`;
  if (min !== undefined && max !== undefined) return ` from ${show(min)} to ${show(max)}`;
  if (max !== undefined) return ` of at most ${show(max)}`;
  return min === undefined ? "" : ` of at least ${show(min)}`;
}

function plainText(): OptionType<string> {
  return {
    expects: "text",
    accepts: (value) => typeof value === "string",
    parse: (written) => written,
    show: (value) => value,
  };
}

function nonEmpty(): OptionType<string> {
  const accepts = (value: unknown): boolean => typeof value === "string" && value !== "";
  return { ...plainText(), expects: "text that is not empty", accepts };
}

function choice<const Name extends string>(names: readonly Name[]): OptionType<Name> {
  const expects = `one of ${names.join(", ")}`;
  return {
    expects,
    choices: names,
    accepts: (value) => names.some((name) => name === value),
    parse: (written) => names.find((name) => name === written) ?? refuse(expects, written),
    show: (value) => value,
  };
}

function toggle(): OptionType<boolean> {
  return {
    expects: "true or false",
    accepts: (value) => typeof value === "boolean",
    parse: (written) => {
      const word = written.trim().toLowerCase();
      if (["1", "true", "yes", "on"].includes(word)) return true;
      return ["0", "false", "no", "off", ""].includes(word) ? false : refuse("true or false", written);
    },
    show: (value) => (value ? "on" : "off"),
  };
}

/** Several values of one kind. */
function list<T>(item: OptionType<T>): OptionType<readonly T[]> {
  return {
    expects:
      item.choices === undefined ? `a list, each ${item.expects}` : `some of ${item.choices.join(", ")}`,
    isList: true,
    ...(item.choices !== undefined && { choices: item.choices }),
    accepts: (value) => Array.isArray(value) && value.every((each) => item.accepts(each)),
    parse: (written, earlier) => [...(earlier ?? []), item.parse(written, undefined)],
    show: (values) => values.map((value) => item.show(value)).join(" "),
  };
}

/** Named values, as text NAME=VALUE. */
function pairs<T>(item: OptionType<T>): OptionType<Readonly<Record<string, T>>> {
  return {
    expects: `an object whose values are each ${item.expects}`,
    isList: true,
    accepts: (value) =>
      typeof value === "object" && value !== null && Object.values(value).every((each) => item.accepts(each)),
    parse(written, earlier) {
      const at = written.indexOf("=");
      if (at <= 0) return refuse("NAME=VALUE", written);
      return {
        ...earlier,
        [written.slice(0, at).trim()]: item.parse(written.slice(at + 1).trim(), undefined),
      };
    },
    show: (values) =>
      Object.entries(values)
        .map(([name, value]) => `${name}=${item.show(value)}`)
        .join(" "),
  };
}

/** The kinds of values. */
export const valueType = {
  integer,
  number,
  bytes,
  seconds,
  text: plainText,
  nonEmpty,
  choice,
  toggle,
  list,
  pairs,
};

export interface RowWithDefault<T> extends OptionRow<T> {
  readonly default: T;
}

export interface RequiredRow<T> extends OptionRow<T> {
  readonly isRequired: true;
}

type RowOf<T, Details> = Details extends { readonly default: unknown }
  ? RowWithDefault<T>
  : Details extends { readonly isRequired: true }
    ? RequiredRow<T>
    : OptionRow<T>;

/** Makes rows of one type. */
type RowMaker<T, More = unknown> = <const Details extends RowDetails<T> & More>(
  flag: string | undefined,
  help: string,
  details?: Details,
) => RowOf<T, Details>;

function rowsOf<T>(type: OptionType<T>): RowMaker<T> {
  return <Details extends RowDetails<T>>(flag: string | undefined, help: string, details?: Details) =>
    ({ type, flag, help, ...details }) as RowOf<T, Details>;
}

function numericRows(typeOf: NumericType): RowMaker<number, Range> {
  return (flag, help, details) => {
    const { min, above, max, ...rest }: RowDetails<number> & Range = details ?? {};
    return { type: typeOf({ min, above, max }), flag, help, ...rest } as RowOf<number, typeof details & {}>;
  };
}

/** Makes rows: the flag as `OptionRow` has it, the help, and what else there is to say. */
export const option = {
  integer: numericRows(integer),
  number: numericRows(number),
  bytes: numericRows(bytes),
  /** Given in seconds, kept in milliseconds. */
  seconds: numericRows(seconds),
  text: rowsOf(plainText()),
  texts: rowsOf(list(plainText())),
  /** Off until its flag is given; with `--[no-]` or `turnsOff` on until then. */
  toggle: (flag: string, help: string, details: RowDetails<boolean> = {}): RowWithDefault<boolean> => {
    const isOn = details.turnsOff === true || flag.startsWith("--[no-]");
    return { type: toggle(), flag, help, default: isOn, ...details };
  },
  choice: <const Name extends string, const Details extends RowDetails<NoInfer<Name>>>(
    names: readonly Name[],
    flag: string,
    help: string,
    details?: Details,
  ): RowOf<Name, Details> => rowsOf(choice(names))(flag, help, details),
  choices: <const Name extends string, const Details extends RowDetails<readonly NoInfer<Name>[]>>(
    names: readonly Name[],
    flag: string,
    help: string,
    details?: Details,
  ): RowOf<readonly Name[], Details> => rowsOf(list(choice(names)))(flag, help, details),
  /** An option of any other type. */
  of: <T, const Details extends RowDetails<NoInfer<T>>>(
    type: OptionType<T>,
    flag: string | undefined,
    help: string,
    details?: Details,
  ): RowOf<T, Details> => rowsOf(type)(flag, help, details),
};

/** Reads a JSON object that a flag holds. */
export function parseJsonObject(written: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(written);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Refused below, as other JSON is.
  }
  return refuse("a JSON object", written);
}

/** Bytes with the largest binary unit that leaves at least 1, three digits at most. */
export function formatBinaryBytes(value: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let amount = value;
  while (amount >= 1024 && units.length > 1) {
    amount /= 1024;
    units.shift();
  }
  return `${Number(amount.toPrecision(amount >= 1000 ? 4 : 3))} ${units[0]}`;
}

function refuse(expects: string, written: string): never {
  throw new OctavoError("invalid_option", `expected ${expects}, not ${shown(written)}`);
}

function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value)?.slice(0, 200) ?? typeof value);
}
