import { asObject, OctavoError } from "@octavo/protocol";

/** A value of a patch; null takes the setting out, so that its default holds. */
export type SettingValue = number | string | boolean | null;

/**
 * A change of a configuration. Keys: options of `octavo serve` as in the file of `--config`; of other files JSON pointers (RFC 6901),
 * of a deployment relative to its section. `-` at the end of a list appends.
 */
export interface ConfigPatch {
  readonly of: "serve" | "deployment" | "gateway";
  /** Null leaves the setting out. */
  readonly set: Readonly<Record<string, SettingValue>>;
  /** Why this is expected to help, in one sentence. */
  readonly why: string;
}

/**
 * A configuration with a patch over it; what it was is left as it is. Sections on the way that are not there are made.
 * @throws OctavoError `invalid_option` for what is no pointer, or one that leads through a value
 */
export function patched(config: unknown, set: ConfigPatch["set"]): unknown {
  const result: unknown = structuredClone(config);
  for (const [pointer, value] of Object.entries(set)) {
    const keys = keysOf(pointer);
    let place: unknown = result;
    for (const key of keys.slice(0, -1)) {
      const next: unknown = Array.isArray(place) ? place[indexOf(key, pointer)] : asObject(place)?.[key];
      if (next === undefined && asObject(place) !== undefined) assign(place, key, {}, pointer);
      place = next ?? asObject(place)?.[key];
    }
    assign(place, keys.at(-1) ?? "", value, pointer);
  }
  return result;
}

/** The value at a pointer; undefined where there is none. */
export function settingAt(config: unknown, pointer: string): unknown {
  return keysOf(pointer).reduce<unknown>(
    (place, key) => (Array.isArray(place) ? place[Number(key)] : asObject(place)?.[key]),
    config,
  );
}

/** A pointer to keys one inside the other. */
export function pointerTo(...keys: readonly string[]): string {
  return keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

function keysOf(pointer: string): readonly string[] {
  const keys = pointer.split("/").map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (keys.shift() !== "" || keys.some((key) => key === "" || key === "__proto__"))
    throw misplaced(pointer, "is no pointer such as /routes/chat/strategy");
  return keys;
}

function assign(place: unknown, key: string, value: unknown, pointer: string): void {
  if (Array.isArray(place)) {
    if (key === "-") place.push(value);
    else if (value === null) place.splice(indexOf(key, pointer), 1);
    else place[indexOf(key, pointer)] = value;
    return;
  }
  const fields: Record<string, unknown> | undefined = asObject(place);
  if (fields === undefined) throw misplaced(pointer, "leads to nothing that has settings");
  if (value === null) delete fields[key];
  else fields[key] = value;
}

function indexOf(key: string, pointer: string): number {
  if (/^(?:0|[1-9]\d*)$/.test(key)) return Number(key);
  throw misplaced(pointer, `names ${key} where a list is`);
}

function misplaced(pointer: string, what: string): OctavoError {
  return new OctavoError("invalid_option", `the patch's ${pointer} ${what}`, { param: pointer });
}

/** As lines for the file that it changes. */
export function renderPatch({ of, set }: Pick<ConfigPatch, "of" | "set">): string {
  const separator = of === "serve" ? ": " : " = ";
  return Object.entries(set)
    .map(([name, value]) => (value === null ? `# without ${name}\n` : `${name}${separator}${value}\n`))
    .join("");
}

/** The file that a patch changes. */
export const patchedFiles: Readonly<Record<ConfigPatch["of"], string>> = {
  serve: "the file of `octavo serve --config`",
  deployment: "the deployment's section of cluster.yaml",
  gateway: "gateway.yaml",
};
