import { type EvalCase, type Evaluator, functionTarget, type Target } from "@octavo/evals";
import { Random } from "@octavo/statistics";
import type { Candidate, TunedPart } from "../artifact/candidate.js";
import type { CaseParts } from "../search/split.js";

/**
 * A task with a known optimum. Each case is of a kind, and is answered right where a text holds the rule of that kind: `rule 3`.
 * Rules that no kind needs do harm. A part has the kinds whose number leaves its index as the remainder.
 */
export interface RulesTask {
  readonly cases: CaseParts;
  readonly seed: Candidate;
  readonly parts: readonly TunedPart[];
  readonly target: Target;
  readonly evaluators: readonly Evaluator[];
  /** Writes what its questions ask for, with mistakes. */
  readonly teacher: Target;
  /** The score of a candidate on average, were there cases without end. */
  readonly expectedScore: (candidate: Candidate) => number;
}

export interface RulesTaskOptions {
  readonly seed: number;
  readonly numKinds?: number;
  /** Rules that a teacher may write and no kind needs. */
  readonly numUseless?: number;
  readonly sizes?: { readonly train: number; readonly validation: number; readonly heldOut: number };
  /** Texts that the rules are divided among. Default the prompt alone. */
  readonly parts?: readonly string[];
  /** A case without its rule is right in this share of cases. Default 0.1. */
  readonly guess?: number;
  /** Nothing that is written changes how often answers are right: 0.5. */
  readonly isNull?: boolean;
  /** Share of the teacher's texts that ignore what it was shown. Default 0.3. */
  readonly carelessness?: number;
}

const harm = 0.05;

export function rulesTask(options: RulesTaskOptions): RulesTask {
  const { seed, numKinds = 6, numUseless = 6, guess = 0.1, isNull = false, carelessness = 0.3 } = options;
  const { sizes = { train: 60, validation: 40, heldOut: 80 }, parts: ids = ["prompt"] } = options;
  let made = 0;
  const casesOf = (count: number): readonly EvalCase[] =>
    Array.from({ length: count }, () => rulesCase(seed, made++, numKinds));
  const cases = {
    train: casesOf(sizes.train),
    validation: casesOf(sizes.validation),
    heldOut: casesOf(sizes.heldOut),
  };
  const parts = ids.map((id) => ({ id, text: "Answer the question." }));
  const probability = (texts: readonly string[], kind: number): number => {
    if (isNull) return 0.5;
    const rules = new Set(rulesIn(texts[kind % texts.length] ?? ""));
    const useless = texts.flatMap(rulesIn).filter((rule) => rule >= numKinds).length;
    return Math.max(0, (rules.has(kind) ? 0.95 : guess) - harm * useless);
  };
  const target = functionTarget("artifact", (evalCase) => {
    const texts = ids.map((id) => textOf(evalCase, id));
    const kind = Number(evalCase.metadata["kind"]);
    // the draw of a case under the same texts is the same; under other texts it is another
    const draw = new Random(
      hashOf(`${texts.join("|")} ${evalCase.id} ${evalCase.parameters.seed}`),
    ).uniform();
    return draw < probability(texts, kind) ? `answer ${kind}` : "no idea";
  });
  const teacher = functionTarget("teacher", (evalCase) => {
    const question = evalCase.messages.at(-1)?.content ?? "";
    return scriptedReply(question, new Random(hashOf(`${question} ${evalCase.parameters.seed}`)), {
      numRules: numKinds + numUseless,
      carelessness,
    });
  });
  return {
    cases,
    parts,
    seed: { texts: Object.fromEntries(parts.map(({ id, text }) => [id, text])), shots: [] },
    target,
    evaluators: [rulesEvaluator],
    teacher,
    expectedScore: ({ texts }) => {
      const all = ids.map((id) => texts[id] ?? "");
      const kinds = Array.from({ length: numKinds }, (_, kind) => probability(all, kind));
      return kinds.reduce((sum, p) => sum + p, 0) / numKinds;
    },
  };
}

function rulesCase(seed: number, index: number, numKinds: number): EvalCase {
  const kind = index % numKinds;
  return {
    id: `${seed}-${index}`,
    messages: [{ role: "user", content: `Question ${index} of kind ${kind}` }],
    tools: [
      {
        type: "function",
        function: {
          name: "look",
          description: "Answer the question.",
          parameters: {
            type: "object",
            properties: { at: { type: "string", description: "Answer the question." } },
          },
        },
      },
    ],
    context: undefined,
    expected: { outputs: [`answer ${kind}`] },
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: [],
    metadata: { kind },
  };
}

const rulesEvaluator: Evaluator = {
  name: "rules",
  description: "right where the answer is the kind's",
  inputs: ["output"],
  output: "pass_fail",
  needsJudge: false,
  evaluate({ case: { metadata }, answer }) {
    const kind = Number(metadata["kind"]);
    const passed = answer.text === `answer ${kind}`;
    return {
      status: "scored",
      value: Number(passed),
      passed,
      reason: passed ? "as it should be" : `needs rule ${kind}`,
    };
  },
};

function textOf(evalCase: EvalCase, id: string): string {
  if (id === "prompt") return evalCase.messages.find(({ role }) => role === "system")?.content ?? "";
  const own = evalCase.tools[0]?.function;
  if (id === "tool:look") return own?.description ?? "";
  return JSON.stringify(own?.parameters ?? {});
}

function rulesIn(text: string): readonly number[] {
  return [...new Set([...text.matchAll(/\brule (\d+)/g)].map(([, digits]) => Number(digits)))];
}

/** What a teacher of moderate skill writes: it takes up what cases say they need, or something of its own. */
function scriptedReply(
  question: string,
  random: Random,
  { numRules, carelessness }: { readonly numRules: number; readonly carelessness: number },
): string {
  const [, tag = "text"] = /between <(\w+)>/.exec(question) ?? [];
  const count = Number(/each of the (\d+)/.exec(question)?.[1] ?? 1);
  const [, current = ""] = /:\n===\n([\s\S]*?)\n===/.exec(question) ?? [];
  const needed = [
    ...question.slice(question.indexOf(current) + current.length).matchAll(/needs rule (\d+)/g),
  ].map(([, digits]) => Number(digits));
  const one = (): string => {
    const isCareless = needed.length === 0 || random.uniform() < carelessness;
    const rule = isCareless ? random.integer(0, numRules - 1) : random.pick(needed);
    if (tag !== "text") return `needs rule ${rule}`;
    const isParaphrase = question.includes("keep its meaning");
    const added = isParaphrase ? "" : ` Heed rule ${rule}.`;
    return `${current}${added}${isParaphrase ? ` (${random.integer(1, 1e6)})` : ""}`;
  };
  return Array.from({ length: count }, () => `<${tag}>${one()}</${tag}>`).join("\n");
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return hash;
}
