import { OctavoError } from "@octavo/protocol";
import type { Sample } from "../evaluators/evaluator.js";
import { type ShownInput, sampleText } from "./sample-texts.js";

/** Names that templates may use; `question` and the answers are the names of other tools for the same. */
const fields: Readonly<Record<string, ShownInput>> = {
  input: "input",
  question: "input",
  output: "output",
  answer: "output",
  context: "context",
  expected_output: "expectedOutput",
  expected_schema: "schema",
  tools: "tools",
  tool_calls: "toolCalls",
  expected_tool_calls: "expectedToolCalls",
  conversation: "conversation",
  baseline: "baseline",
  answer_a: "baseline",
  answer_b: "output",
};

const holes = /\{\{\s*([\w.]+)\s*\}\}/g;

/** A text with `{{ field }}` placeholders for parts of a sample, filled once: inserted text is never read as a template. */
export class SampleTemplate {
  readonly #text: string;
  /** What the template reads; a sample that lacks one of them cannot be rendered. */
  readonly inputs: readonly ShownInput[];

  /** @throws OctavoError `invalid_option` that names the unknown field */
  constructor(text: string, param: string) {
    const fail = (what: string): never => {
      throw new OctavoError(
        "invalid_option",
        `${param}: ${what}; fields are ${Object.keys(fields).join(", ")} and metadata.NAME, written {{ input }}`,
        { param },
      );
    };
    const rest = text.replace(holes, (_, name: string) => {
      if (!isMetadata(name) && !Object.hasOwn(fields, name))
        fail(`there is no field ${JSON.stringify(name)}`);
      return "";
    });
    const odd = /\{\{[^}]{0,40}\}?|\{%[^}]{0,40}/.exec(rest);
    if (odd !== null) fail(`${JSON.stringify(odd[0])} is no field: templates have fields only, no code`);
    this.#text = text;
    const names = [...text.matchAll(holes)].map((match) => match[1] ?? "");
    this.inputs = [...new Set(names.flatMap((name) => fields[name] ?? []))];
  }

  /** Metadata that the case lacks is empty. */
  render(sample: Sample): string {
    return this.#text.replace(holes, (_, name: string) => {
      const field = fields[name];
      if (field !== undefined) return sampleText(sample, field) ?? "";
      const value = sample.case.metadata[name.slice("metadata.".length)];
      return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
    });
  }
}

function isMetadata(name: string): boolean {
  return /^metadata\.\w+$/.test(name);
}
