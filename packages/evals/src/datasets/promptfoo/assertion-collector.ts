import { isRecord } from "@octavo/protocol";
import type { EvaluatorSpec } from "../../evaluators/evaluator.js";
import { type MappedAssertion, mapAssertion } from "./assertion-types.js";
import { fillDeep, type Variables } from "./fill-template.js";
import type { AssertionEntry } from "./read-tests.js";

/** An assertion of a promptfoo file that has no evaluator here, and why. */
export interface UnsupportedAssertion {
  /** Where it stands, such as `tests[2].assert[0]`. */
  readonly at: string;
  readonly type: string;
  readonly reason: string;
}

interface CaseAssertions {
  /** One for each evaluator that scores the case. */
  readonly tags: readonly string[];
  readonly outputs: readonly string[] | undefined;
}

type Supported = Exclude<MappedAssertion, { unsupported: string }>;

interface ReadAssertion {
  readonly at: string;
  /** Its type, `not-` and all. */
  readonly written: string;
  readonly not: boolean;
  readonly mapped: Supported;
  readonly metric: string | undefined;
  readonly weight: number | undefined;
}

interface Made {
  readonly spec: EvaluatorSpec;
  readonly tag: string;
}

/**
 * Evaluators of a configuration's assertions. Assertions that differ in nothing share one; the texts that a case's answer
 * should be or hold become its expected outputs, so that a thousand tests with a thousand texts share one too.
 */
export class AssertionCollector {
  readonly #templates: Variables;
  readonly #made = new Map<string, Made>();
  readonly #weights = new Map<string, number>();
  readonly #unsupported = new Map<string, UnsupportedAssertion>();

  constructor(templates: Variables) {
    this.#templates = templates;
  }

  get evaluators(): readonly EvaluatorSpec[] {
    return Array.from(this.#made.values(), ({ spec }) => spec);
  }

  get weights(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#weights);
  }

  get unsupported(): readonly UnsupportedAssertion[] {
    return [...this.#unsupported.values()];
  }

  collect(entries: readonly AssertionEntry[], fill: (text: string) => string): CaseAssertions {
    const read = Array.from(this.#flatten(entries), (entry) => this.#read(entry, fill)).filter(
      (one) => one !== undefined,
    );
    const outputs = expectedOutputs(read);
    const tags = new Set<string>();
    for (const { at, written, not, mapped, metric, weight } of read) {
      const { texts } = mapped;
      const isOwn = texts !== undefined && outputs !== undefined && sameTexts(outputs, texts);
      if (texts !== undefined && !isOwn && mapped.takesTexts !== true) {
        this.#refuse(at, written, "compares with other texts than another assertion of its test");
        continue;
      }
      const isTurned = not !== (mapped.isOpposite === true);
      const made = this.#make(written, mapped, isOwn ? undefined : texts, isTurned, metric);
      tags.add(made.tag);
      if (weight !== undefined && weight !== 1) this.#weights.set(made.spec.as ?? written, weight);
    }
    return { tags: [...tags], outputs };
  }

  #read({ at, value }: AssertionEntry, fill: (text: string) => string): ReadAssertion | undefined {
    const given = isRecord(value) ? value : {};
    const written = typeof given["type"] === "string" ? given["type"] : "";
    const not = written.startsWith("not-");
    const type = not ? written.slice("not-".length) : written;
    const threshold = typeof given["threshold"] === "number" ? given["threshold"] : undefined;
    const filled = fillDeep(given["value"], fill);
    const isFile = typeof filled === "string" && filled.startsWith("file://");
    const mapped: MappedAssertion = isFile
      ? { unsupported: "has its value in a file, which is not read" }
      : mapAssertion({ type, value: filled, threshold });
    if ("unsupported" in mapped) {
      this.#refuse(at, written, mapped.unsupported);
      return undefined;
    }
    const { metric, weight } = given;
    return {
      at,
      written,
      not,
      mapped,
      metric: typeof metric === "string" ? metric : undefined,
      weight: typeof weight === "number" ? weight : undefined,
    };
  }

  #make(
    written: string,
    { evaluator, options = {}, threshold }: Supported,
    texts: readonly string[] | undefined,
    not: boolean,
    metric: string | undefined,
  ): Made {
    const all = { ...options, ...(texts !== undefined && { values: texts }) };
    const parts = {
      name: evaluator,
      ...(Object.keys(all).length > 0 && { options: all }),
      ...(not && { not }),
      ...(threshold !== undefined && { threshold }),
    };
    const key = JSON.stringify([parts, metric ?? null]);
    const known = this.#made.get(key);
    if (known !== undefined) return known;
    const as = this.#freeName(metric ?? written);
    const tag = `assert:${as}`;
    const made = { spec: { ...parts, as, tags: [tag] }, tag };
    this.#made.set(key, made);
    return made;
  }

  #freeName(wanted: string): string {
    const base = wanted.replaceAll(/[^\w.:/-]+/g, "-").slice(0, 56) || "assertion";
    const taken = new Set(Array.from(this.#made.values(), ({ spec }) => spec.as));
    let name = base;
    for (let number = 2; taken.has(name); number++) name = `${base}-${number}`;
    return name;
  }

  #refuse(at: string, type: string, reason: string): void {
    this.#unsupported.set(`${at} ${reason}`, { at, type, reason });
  }

  /** Templates in place of references to them, and the members of sets that all must pass. */
  *#flatten(entries: readonly AssertionEntry[]): Generator<AssertionEntry> {
    for (const { at, value } of entries) {
      const reference = isRecord(value) ? value["$ref"] : undefined;
      const name = typeof reference === "string" ? reference.replace("#/assertionTemplates/", "") : undefined;
      const template = name === undefined ? undefined : this.#templates[name];
      const own = isRecord(value) && isRecord(template) ? { ...template, ...value } : value;
      if (!isRecord(own) || own["type"] !== "assert-set") {
        yield { at, value: own };
        continue;
      }
      const { assert: members, threshold } = own;
      if (!Array.isArray(members) || (threshold !== undefined && threshold !== 1)) {
        this.#refuse(at, "assert-set", "passes when a share of its members does; state that in eval.yaml");
        continue;
      }
      yield* this.#flatten(
        members.map((member: unknown, index) => ({ at: `${at}.assert[${index}]`, value: member })),
      );
    }
  }
}

/** Evaluators for which texts are whole right answers. */
const reference = new Set(["exact_match", "bleu_score", "rouge_1", "ground_truth_match"]);

/** What a case's answer should be: what it is compared with as a whole, or else what it should contain. */
function expectedOutputs(read: readonly ReadAssertion[]): readonly string[] | undefined {
  const asserted = read.filter(({ not, mapped }) => !not && mapped.texts !== undefined);
  const whole = asserted.find(({ mapped }) => reference.has(mapped.evaluator));
  return (whole ?? asserted[0])?.mapped.texts;
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}
