import { isRecord } from "@octavo/protocol";

/** An assertion as promptfoo writes it, with its texts filled in. */
interface PromptfooAssertion {
  /** Without `not-`. */
  readonly type: string;
  readonly value: unknown;
  readonly threshold: number | undefined;
}

/** What of ours does what an assertion does. */
export type MappedAssertion =
  | {
      readonly evaluator: string;
      readonly options?: Readonly<Record<string, unknown>>;
      /** Texts that are compared with; they may be the case's expected outputs instead of an option. */
      readonly texts?: readonly string[];
      /** Whether texts can be an option at all. */
      readonly takesTexts?: boolean;
      readonly threshold?: number;
      /** The evaluator passes what the assertion refuses. */
      readonly isOpposite?: boolean;
    }
  | { readonly unsupported: string };

type Mapping = (assertion: PromptfooAssertion) => MappedAssertion;

const runsCode = "runs code, which is never done here; write an evaluator as a module";
const needsEmbeddings = "compares embeddings, which no evaluator does";
const ofTheRun = "is of the run, not of one answer: state it under `health` in eval.yaml";

function texts(evaluator: string, options: Readonly<Record<string, unknown>> = {}): Mapping {
  return ({ value }) => {
    const given = textsOf(value);
    return given === undefined
      ? { unsupported: "needs a text, or a list of texts, as its value" }
      : { evaluator, options, texts: given, takesTexts: true };
  };
}

/** For scores against the expected outputs, from a threshold on. */
function against(evaluator: string, defaultThreshold?: number): Mapping {
  return ({ value, threshold = defaultThreshold }) => {
    const given = textsOf(value);
    if (given === undefined) return { unsupported: "needs a text as its value" };
    return { evaluator, texts: given, ...(threshold !== undefined && { threshold }) };
  };
}

function plain(evaluator: string): Mapping {
  return ({ threshold }) => ({ evaluator, ...(threshold !== undefined && { threshold }) });
}

const criteria: Mapping = ({ value, threshold }) => {
  const grading = textsOf(value)?.join("\n");
  if (grading === undefined || grading.trim() === "")
    return { unsupported: "needs its criteria as its value" };
  return {
    evaluator: "custom_llm_judge",
    options: { grading_criteria: grading },
    ...(threshold !== undefined && { threshold }),
  };
};

function unsupported(reason: string): Mapping {
  return () => ({ unsupported: reason });
}

const ignoreCase = { ignoreCase: true };

const mappings: Readonly<Record<string, Mapping>> = {
  equals: texts("exact_match"),
  contains: texts("contains"),
  icontains: texts("contains", ignoreCase),
  "contains-any": texts("contains_any"),
  "icontains-any": texts("contains_any", ignoreCase),
  "contains-all": texts("contains_all"),
  "icontains-all": texts("contains_all", ignoreCase),
  "starts-with": texts("starts_with"),
  regex: ({ value }) =>
    typeof value === "string"
      ? { evaluator: "regex", options: { pattern: value } }
      : { unsupported: "needs a pattern as its value" },
  "is-json": ({ value }) =>
    value === undefined
      ? { evaluator: "is_json" }
      : isRecord(value)
        ? { evaluator: "json_schema", options: { schema: value } }
        : { unsupported: "needs a JSON schema as its value" },
  "contains-json": ({ value }) =>
    value === undefined
      ? { evaluator: "contains_json" }
      : isRecord(value)
        ? { evaluator: "contains_json", options: { schema: value } }
        : { unsupported: "needs a JSON schema as its value" },
  "is-valid-openai-tools-call": plain("valid_tool_calls"),
  "is-valid-openai-function-call": plain("valid_tool_calls"),
  "is-valid-function-call": plain("valid_tool_calls"),
  "word-count": ({ value }) => {
    const [min, max] = isRecord(value) ? [value["min"], value["max"]] : [Number(value), Number(value)];
    const isLimit = (limit: unknown): boolean => limit === undefined || Number.isInteger(limit);
    return isLimit(min) && isLimit(max)
      ? {
          evaluator: "length_between",
          options: { unit: "words", ...(min !== undefined && { min }), ...(max !== undefined && { max }) },
        }
      : { unsupported: "needs a number of words, or `min` and `max`, as its value" };
  },
  "is-refusal": () => ({ evaluator: "no_refusal_patterns", isOpposite: true }),
  bleu: against("bleu_score", 0.5),
  "rouge-n": against("rouge_1", 0.75),
  "llm-rubric": criteria,
  "g-eval": criteria,
  "model-graded-closedqa": criteria,
  factuality: against("ground_truth_match"),
  "model-graded-factuality": against("ground_truth_match"),
  "context-faithfulness": plain("context_adherence"),
  "context-relevance": plain("context_relevance"),
  javascript: unsupported(runsCode),
  python: unsupported(runsCode),
  ruby: unsupported(runsCode),
  webhook: unsupported(runsCode),
  similar: unsupported(needsEmbeddings),
  "answer-relevance": unsupported(needsEmbeddings),
  latency: unsupported(ofTheRun),
  cost: unsupported(ofTheRun),
};

/** Types that a CSV's `__expected` may begin with. */
export function isKnownType(type: string): boolean {
  return Object.hasOwn(mappings, type);
}

export function mapAssertion(assertion: PromptfooAssertion): MappedAssertion {
  const mapping = Object.hasOwn(mappings, assertion.type) ? mappings[assertion.type] : undefined;
  return mapping?.(assertion) ?? { unsupported: "is of a type that no evaluator stands for" };
}

function textsOf(value: unknown): readonly string[] | undefined {
  if (typeof value === "string") return [value];
  if (typeof value === "number" || typeof value === "boolean") return [String(value)];
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string")) return value;
  return undefined;
}
