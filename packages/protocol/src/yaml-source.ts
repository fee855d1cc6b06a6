import { OctavoError } from "./errors.js";
import { LineCounter, parseDocument, type Document } from "yaml";

const maxBytes = 1 << 20;

/** A YAML file whose values know where they stand. */
export class YamlSource {
  readonly name: string | undefined;
  readonly value: unknown;
  readonly #document: Document;
  readonly #lines: LineCounter;

  /** @throws OctavoError `invalid_option` that names the line, when it is not YAML or larger than 1 MiB */
  constructor(name: string | undefined, text: string) {
    this.name = name;
    const shown = name ?? "the configuration";
    if (text.length > maxBytes)
      throw new OctavoError("invalid_option", `${shown} has more than ${maxBytes} characters`);
    this.#lines = new LineCounter();
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false, uniqueKeys: true });
    const [error] = this.#document.errors;
    if (error !== undefined) {
      const { line, col } = this.#lines.linePos(error.pos[0]);
      throw new OctavoError("invalid_option", `${shown}:${line}:${col}: ${error.message}`);
    }
    try {
      // aliases are counted, so that a small file does not grow without end
      this.value = this.#document.toJS({ maxAliasCount: 100 });
    } catch (cause) {
      throw new OctavoError("invalid_option", `${shown}: ${OctavoError.from(cause).message}`, { cause });
    }
  }

  /** `eval.yaml:12:5` of a value, or of the nearest that is there of those around it. */
  placeOf(path: readonly PropertyKey[]): string | undefined {
    if (this.name === undefined) return undefined;
    for (let length = path.length; length >= 0; length -= 1) {
      const node: unknown = this.#document.getIn(
        path.slice(0, length).map((key) => (typeof key === "symbol" ? String(key) : key)),
        true,
      );
      if (typeof node !== "object" || node === null || !("range" in node) || !Array.isArray(node.range))
        continue;
      const { line, col } = this.#lines.linePos(Number(node.range[0]));
      return `${this.name}:${line}:${col}`;
    }
    return this.name;
  }

  /** A problem with a value, with its path and line; messages of schemas lose "Invalid input: ", which says nothing. */
  problem(path: readonly PropertyKey[], message: string, cause?: unknown): OctavoError {
    const param = pathText(path);
    const said = message.replace(/^Invalid (?:input|option): /, "");
    return new OctavoError(
      "invalid_option",
      [this.placeOf(path), param, said].filter((part) => part !== undefined && part !== "").join(": "),
      { param, ...(cause === undefined ? {} : { cause }) },
    );
  }
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((key, index) =>
      typeof key === "number" ? `[${key}]` : index === 0 ? String(key) : `.${String(key)}`,
    )
    .join("");
}
