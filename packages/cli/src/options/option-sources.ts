import { nearestName, OctavoError } from "@octavo/protocol/errors";
import type { OptionRow, OptionRows } from "@octavo/protocol/options";

/** Arguments in terms of Octavo's flags, and what is to be said about those that are left out. */
export interface Translation {
  readonly args: readonly string[];
  readonly notes: readonly string[];
}

/** Where a command's options come from beside its flags. */
export interface OptionSources {
  /** Prefix of environment variables named after flags: `OCTAVO_` makes `OCTAVO_MAX_MODEL_LEN` of `--max-model-len`. */
  readonly environmentPrefix: string;
  /** Reads a command line that may hold flags of another program. */
  readonly translate: (args: readonly string[]) => Translation;
  /** The arguments in the file that the option `config` names. */
  readFile(path: string): Promise<readonly string[]>;
}

/** Values by option. */
export type Given = Readonly<Record<string, unknown>>;

/** Values of flags, else of the environment, else of the file, else defaults. */
export async function valuesOf(
  rows: OptionRows,
  flags: Given,
  sources: OptionSources | undefined,
  notes: readonly string[],
  parseFile: (
    path: string,
    args: readonly string[],
  ) => Promise<{ readonly given: Given; readonly notes: readonly string[] }>,
): Promise<{ readonly values: Given; readonly notes: readonly string[] }> {
  const environment = fromEnvironment(rows, sources?.environmentPrefix);
  const path = flags["config"] ?? environment.given["config"];
  const file =
    sources !== undefined && typeof path === "string"
      ? await parseFile(path, await sources.readFile(path))
      : { given: {}, notes: [] };
  const given = { ...file.given, ...environment.given, ...flags };
  return {
    values: Object.fromEntries(Object.entries(rows).map(([key, row]) => [key, given[key] ?? row.default])),
    notes: [...notes, ...environment.notes, ...file.notes],
  };
}

/** The variable named after an option's flag. */
export function environmentName(prefix: string, { flag }: OptionRow): string | undefined {
  const name = flag?.split(" ")[0]?.replace("[no-]", "");
  return name === undefined ? undefined : `${prefix}${name.slice(2).replaceAll("-", "_").toUpperCase()}`;
}

/** As Kubernetes sets them for a service of the name `octavo`. */
const serviceLink = /^(tcp|udp|sctp):\/\//;

function fromEnvironment(
  rows: OptionRows,
  prefix: string | undefined,
): { readonly given: Given; readonly notes: readonly string[] } {
  const given: Record<string, unknown> = {};
  const notes: string[] = [];
  const known = new Set<string>();
  for (const [key, row] of Object.entries(rows)) {
    const derived = prefix === undefined ? undefined : environmentName(prefix, row);
    const names = [...(derived === undefined ? [] : [derived]), ...(row.environment ?? [])];
    for (const name of names) known.add(name);
    const name = names.find((variable) => process.env[variable] !== undefined);
    const text = name === undefined ? undefined : process.env[name];
    if (name === undefined || text === undefined) continue;
    if (name === derived && serviceLink.test(text)) {
      notes.push(`${name} is not read: ${text} is what Kubernetes sets for a service of this name`);
      continue;
    }
    const value = valueOf(row, text, name);
    given[key] = row.turnsOff === true ? value !== true : value;
  }
  if (prefix !== undefined) notes.push(...misspelt(prefix, known));
  return { given, notes };
}

function valueOf({ type }: OptionRow, text: string, name: string): unknown {
  try {
    if (type.isList !== true) return type.parse(text, undefined);
    // JSON has commas of its own
    const items = text.trimStart().startsWith("{") ? [text] : text.split(",");
    return (
      items
        .map((item) => item.trim())
        .filter((item) => item !== "")
        .reduce<unknown>((earlier, item) => type.parse(item, earlier), undefined) ?? []
    );
  } catch (thrown) {
    throw new OctavoError("invalid_option", `${name}: ${OctavoError.from(thrown).message}`, {
      param: name,
      cause: thrown,
    });
  }
}

/** Variables that are nearly those of an option. Short ones may be anybody's. */
function misspelt(prefix: string, known: ReadonlySet<string>): readonly string[] {
  return Object.keys(process.env)
    .filter((name) => name.startsWith(prefix) && name.length >= prefix.length + 8 && !known.has(name))
    .flatMap((name) => {
      const nearest = nearestName(
        name.slice(prefix.length),
        [...known].map((other) => other.slice(prefix.length)),
      );
      return nearest === undefined ? [] : [`${name} is not read; did you mean ${prefix}${nearest}?`];
    });
}
