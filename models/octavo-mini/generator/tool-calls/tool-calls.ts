import { drawChatTurn, unknownTurn } from "../chat/chat.js";
import { writeJson } from "../json.js";
import type { GoldenCase, CaseSource, JsonRecord, Message, TaskFamily, TaskTool, TaskCall } from "../task.js";
import { type ToolPlan, catalog } from "./catalog.js";
import { type Chain, chains } from "./chains.js";
import { describeTool, drawValues, fill, inventTool, markup } from "./tool-schema.js";

const user = (content: string): Message => ({ role: "user", content });
const result = (value: JsonRecord): Message => ({ role: "tool", content: writeJson(value) });
const calling = (calls: readonly TaskCall[]): Message => ({
  role: "assistant",
  content: "",
  tool_calls: calls.map((call) => ({ type: "function", function: call })),
});

export const noToolAnswer = "None of my tools can do that.";

interface Request {
  readonly plan: ToolPlan;
  readonly call: TaskCall;
  readonly text: string;
}

function pickPlan(source: CaseSource, avoid: readonly string[]): ToolPlan {
  for (;;) {
    const plan = source.random.chance(0.45) ? inventTool(source) : source.random.pick(catalog);
    if (!avoid.includes(plan.name)) return plan;
  }
}

function request(plan: ToolPlan, source: CaseSource): Request {
  const values = drawValues(plan.parameters, source);
  return {
    plan,
    call: { name: plan.name, arguments: values },
    text: fill(source.random.pick(plan.requests), values),
  };
}

/** The tools in use among up to four that are not, in random order. */
function offer(used: readonly ToolPlan[], source: CaseSource): TaskTool[] {
  const plans = [...used];
  const others = source.random.int(used.length === 0 ? 1 : 0, 4);
  for (let i = 0; i < others; i++)
    plans.push(
      pickPlan(
        source,
        plans.map((plan) => plan.name),
      ),
    );
  return source.random.shuffle(plans).map(describeTool);
}

function callCase(
  kind: string,
  messages: readonly Message[],
  tools: readonly TaskTool[],
  calls: readonly TaskCall[],
): GoldenCase {
  return {
    task: "tools",
    kind,
    messages,
    tools,
    context: null,
    gold: calls.map(markup).join("\n"),
    expectedCalls: calls,
  };
}

function answerCase(
  kind: string,
  messages: readonly Message[],
  tools: readonly TaskTool[],
  gold: string,
): GoldenCase {
  return { task: "tools", kind, messages, tools, context: null, gold, expectedCalls: [] };
}

function single(source: CaseSource): GoldenCase {
  const asked = request(pickPlan(source, []), source);
  const plans = [asked.plan];
  const before: Message[] = [];
  while (source.random.chance(source.split === "train" ? 0.65 : 0.2)) {
    const plan = source.random.chance(0.5)
      ? asked.plan
      : pickPlan(
          source,
          plans.map(({ name }) => name),
        );
    if (!plans.includes(plan)) plans.push(plan);
    before.push(...finished(plan, source).messages);
  }
  return callCase("single", [...before, user(asked.text)], offer(plans, source), [asked.call]);
}

/** A request that was already served: call, result and answer. */
function finished(plan: ToolPlan, source: CaseSource): { messages: Message[]; answer: string } {
  const asked = request(plan, source);
  const values = drawValues(plan.results, source);
  const answer = fill(plan.answer, { ...asked.call.arguments, ...values });
  return {
    messages: [
      user(asked.text),
      calling([asked.call]),
      result(values),
      { role: "assistant", content: answer },
    ],
    answer,
  };
}

function answered(source: CaseSource): GoldenCase {
  const plan = pickPlan(source, []);
  const { messages, answer } = finished(plan, source);
  return answerCase("answer", messages.slice(0, -1), offer([plan], source), answer);
}

function parallel(source: CaseSource): GoldenCase {
  const { random } = source;
  const first = pickPlan(source, []);
  const plans = [first];
  const wanted = random.int(2, 3);
  const same = random.chance(0.5);
  while (plans.length < wanted)
    plans.push(
      same
        ? first
        : pickPlan(
            source,
            plans.map((plan) => plan.name),
          ),
    );
  const asked = plans.map((plan) => request(plan, source));
  const joiner = random.pick([" ", " Also: ", " And then: ", "\n"]);
  const messages = [user(asked.map(({ text }) => text).join(joiner))];
  const tools = offer([...new Set(plans)], source);
  const calls = asked.map(({ call }) => call);
  if (random.chance(0.7)) return callCase("parallel", messages, tools, calls);
  const values = plans.map((plan) => drawValues(plan.results, source));
  const answer = plans
    .map((plan, i) => fill(plan.answer, { ...(calls[i] as TaskCall).arguments, ...values[i] }))
    .join(" ");
  return answerCase("parallel-answer", [...messages, calling(calls), ...values.map(result)], tools, answer);
}

function chained(source: CaseSource): GoldenCase {
  const { random } = source;
  const chain = random.pick(chains);
  const first = planOf(chain.first);
  const second = planOf(chain.second);
  const firstValues = drawValues(first.parameters, source);
  const firstResults = drawValues(first.results, source);
  const secondValues: JsonRecord = {
    ...drawValues(second.parameters, source),
    [chain.fills]: firstResults[chain.from] ?? null,
  };
  const secondResults = drawValues(second.results, source);
  const calls: [TaskCall, TaskCall] = [
    { name: first.name, arguments: firstValues },
    { name: second.name, arguments: secondValues },
  ];
  const tools = offer([first, second], source);
  const asked = user(fill(random.pick(chain.requests), { ...secondValues, ...firstValues }));
  const afterFirst = [asked, calling([calls[0]]), result(firstResults)];
  switch (random.int(0, 2)) {
    case 0:
      return callCase("chain-first", [asked], tools, [calls[0]]);
    case 1:
      return callCase("chain-second", afterFirst, tools, [calls[1]]);
    default: {
      const answer = fill(second.answer, { ...secondValues, ...secondResults });
      return answerCase(
        "chain-answer",
        [...afterFirst, calling([calls[1]]), result(secondResults)],
        tools,
        answer,
      );
    }
  }
}

function planOf(name: Chain["first"]): ToolPlan {
  const plan = catalog.find((candidate) => candidate.name === name);
  if (plan === undefined) throw new RangeError(`the catalog has no tool named ${name}`);
  return plan;
}

/** Small talk needs no tool; a request that no offered tool serves is turned down. */
function withoutTool(source: CaseSource): GoldenCase {
  const { random } = source;
  if (random.chance(0.4)) {
    const turn = random.chance(0.8) ? drawChatTurn(source) : unknownTurn(source);
    return answerCase("small-talk", [user(turn.question)], offer([], source), turn.answer);
  }
  const asked = request(random.pick(catalog), source);
  const tools = offer([], source).filter((tool) => tool.function.name !== asked.plan.name);
  if (tools.length === 0) return withoutTool(source);
  return answerCase("no-tool", [user(asked.text)], tools, noToolAnswer);
}

export const toolCalls: TaskFamily<"tools"> = {
  name: "tools",
  generate(source) {
    const draw = source.random.weighted([
      [45, single],
      [15, parallel],
      [15, chained],
      [13, answered],
      [16, withoutTool],
    ] as const);
    return draw(source);
  },
};
