import { OctavoError } from "@octavo/protocol/errors";

/** A schema that cannot be served: `path` is a JSON pointer into it, ending in the keyword at fault. */
export function schemaError(path: string, what: string): OctavoError {
  const shown = path.length > 160 ? `${path.slice(0, 60)}...${path.slice(-90)}` : path;
  return new OctavoError("invalid_request", `The JSON schema's ${shown} ${what}.`);
}

export function pathOf(path: string, step: string | number): string {
  return `${path}/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
