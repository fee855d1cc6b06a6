import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import { type PlanInput, planAttempts } from "./plan.js";
import { PrefixIndex } from "./prefix-index.js";
import { complexityOf } from "./request-facts.js";
import type { StrategyName, TargetState } from "./strategies.js";

const state = (target: string, more: Partial<TargetState> = {}): TargetState => ({
  target,
  model: "m",
  weight: 1,
  admits: true,
  outstanding: 0,
  outstandingTokens: 0,
  firstByteMs: 100,
  price: undefined,
  cachedTokens: undefined,
  ...more,
});

const random = new Random(5);
const input: PlanInput = {
  promptTokens: 1000,
  maxTokens: 100,
  maxImbalance: 10,
  turn: 0,
  random: () => random.uniform(),
  sessionKey: undefined,
};

const orderOf = (
  strategy: StrategyName,
  states: readonly TargetState[],
  more: Partial<PlanInput> = {},
): string[] => planAttempts([{ strategy, states }], { ...input, ...more }).map(({ target }) => target);

describe("the plan of a call", () => {
  it("draws by weight; weight 0 comes last", () => {
    const states = [state("a", { weight: 3 }), state("b"), state("spare", { weight: 0 })];
    const firsts = { a: 0, b: 0, spare: 0 };
    for (let call = 0; call < 4000; call += 1) {
      const order = orderOf("weighted", states);
      firsts[order[0] as keyof typeof firsts] += 1;
      assert.equal(order[2], "spare");
    }
    // 4 standard deviations of a binomial with p = 3/4
    assert.ok(Math.abs(firsts.a - 3000) < 4 * Math.sqrt(4000 * 0.75 * 0.25), JSON.stringify(firsts));
  });

  it("takes turns, and asks the others after", () => {
    const states = ["a", "b", "c"].map((name) => state(name));
    assert.deepEqual(
      [0, 1, 2, 3].map((turn) => orderOf("round_robin", states, { turn }).join("")),
      ["abc", "bca", "cab", "abc"],
    );
  });

  it("prefers the measured latency, and measures targets without one, one call at a time", () => {
    const states = [
      state("slow", { firstByteMs: 200 }),
      state("quick", { firstByteMs: 50 }),
      state("new", { firstByteMs: undefined }),
    ];
    assert.deepEqual(orderOf("least_latency", states), ["new", "quick", "slow"]);
    const busy = states.with(2, state("new", { firstByteMs: undefined, outstanding: 1 }));
    assert.deepEqual(orderOf("least_latency", busy), ["quick", "slow", "new"]);
  });

  it("prefers the fewest calls per weight", () => {
    const states = [state("small", { outstanding: 2 }), state("large", { outstanding: 6, weight: 4 })];
    assert.deepEqual(orderOf("least_outstanding", states), ["large", "small"]);
  });

  it("prefers the lowest cost of this very call", () => {
    const states = [
      state("cheap output", { price: { input: 3, cachedInput: 3, output: 1 } }),
      state("cheap input", { price: { input: 1, cachedInput: 1, output: 10 } }),
    ];
    assert.equal(orderOf("cost_optimised", states, { promptTokens: 1000, maxTokens: 10 })[0], "cheap input");
    assert.equal(orderOf("cost_optimised", states, { promptTokens: 10, maxTokens: 1000 })[0], "cheap output");
  });

  it("weighs a cached prefix against calls under way", () => {
    const holder = (outstanding: number): TargetState => state("holder", { cachedTokens: 900, outstanding });
    assert.equal(orderOf("prefix_aware", [state("idle"), holder(1)])[0], "holder");
    assert.equal(orderOf("prefix_aware", [state("idle"), holder(20)])[0], "idle");
  });

  it("power_of_two: of two drawn at random the one with fewer outstanding tokens, so that the busiest is never first", () => {
    const states = [10, 20, 30, 40].map((outstandingTokens) =>
      state(`${outstandingTokens}`, { outstandingTokens }),
    );
    const firsts = new Map<string, number>();
    for (let call = 0; call < 3000; call += 1) {
      const order = orderOf("power_of_two", states);
      assert.equal(new Set(order).size, 4);
      const [first = "", second = ""] = order;
      assert.ok(Number(first) < Number(second), order.join());
      firsts.set(first, (firsts.get(first) ?? 0) + 1);
    }
    // of 6 pairs the least busy wins 3, the next 2, the third 1
    for (const [name, share] of [
      ["10", 3],
      ["20", 2],
      ["30", 1],
    ] as const)
      assert.ok(Math.abs((firsts.get(name) ?? 0) - 500 * share) < 120, `${name}: ${firsts.get(name)}`);
    assert.equal(firsts.get("40"), undefined);
  });

  it("power_of_two: the longest cached prefix is preferred up to the imbalance bound, and from a tenth of the prompt on", () => {
    const holder = (outstanding: number, cachedTokens = 500): TargetState =>
      state("holder", { cachedTokens, outstanding, outstandingTokens: 1000 * outstanding });
    const idle = [state("idle", { cachedTokens: 0 }), state("idle too", { cachedTokens: 0 })];
    for (let call = 0; call < 50; call += 1) {
      assert.equal(orderOf("power_of_two", [...idle, holder(9)])[0], "holder");
      assert.notEqual(orderOf("power_of_two", [...idle, holder(10)])[0], "holder");
      assert.notEqual(orderOf("power_of_two", [...idle, holder(3, 99)])[0], "holder");
      assert.equal(orderOf("power_of_two", [...idle, holder(4, 100)], { maxImbalance: 5 })[0], "holder");
    }
  });

  it("keeps a session at its target; when a target goes, only its own sessions move", () => {
    const states = ["a", "b", "c", "d"].map((name) => state(name));
    const ownerOf = (session: number, among: readonly TargetState[]): string =>
      orderOf("weighted", among, { sessionKey: `session ${session}` })[0] ?? "";
    const owned = new Map<string, number>();
    for (let session = 0; session < 400; session += 1) {
      const owner = ownerOf(session, states);
      owned.set(owner, (owned.get(owner) ?? 0) + 1);
      assert.equal(ownerOf(session, states), owner);
      const without = states.map((one) => (one.target === "b" ? { ...one, admits: false } : one));
      if (owner === "b") assert.notEqual(ownerOf(session, without), "b");
      else assert.equal(ownerOf(session, without), owner);
    }
    for (const count of owned.values()) assert.ok(count > 60 && count < 140, `${count} of 400`);
  });

  it("leaves out who takes no calls, and goes on with the targets of fallback routes, none of them twice", () => {
    const planned = planAttempts(
      [
        { strategy: "round_robin", states: [state("a", { admits: false }), state("b")] },
        { strategy: "round_robin", states: [state("b"), state("c"), state("a", { admits: false })] },
      ],
      input,
    );
    assert.deepEqual(
      planned.map(({ target }) => target),
      ["b", "c"],
    );
    assert.deepEqual(orderOf("weighted", [state("a", { admits: false })]), []);
  });
});

describe("the prefix index", () => {
  it("predicts whole blocks of the common beginning, never the last token", () => {
    const index = new PrefixIndex(4, 100);
    index.add("t", ["x", "y", "z"]);
    assert.equal(index.predict("t", ["x", "y", "other"], 20), 8);
    assert.equal(
      index.predict("t", ["x", "y", "z"], 12),
      8,
      "the last token of the prompt has to be computed",
    );
    assert.equal(index.predict("t", ["x", "y", "z"], 13), 12);
    assert.equal(index.predict("t", ["other", "y"], 20), 0);
    assert.equal(index.predict("unknown", ["x"], 20), 0);
    index.forget("t");
    assert.equal(index.predict("t", ["x"], 20), 0);
  });

  it("forgets what was used longest ago, ends of prompts before their beginnings", () => {
    const index = new PrefixIndex(1, 3);
    index.add("t", ["a", "b", "c"]);
    index.add("t", ["a", "d"]);
    assert.equal(index.predict("t", ["a", "d"], 9), 2);
    assert.equal(index.predict("t", ["a", "b", "c"], 9), 2);
  });
});

it("complexity grows with length, turns, tools, code and words of reasoning, from 0 to 1", () => {
  const of = (content: string, more: object = {}): number =>
    complexityOf({ messages: [{ role: "user", content }], ...more });
  assert.ok(of("hi") < 0.05);
  assert.ok(of("Prove this, step by step, and explain why.") > of("Say this."));
  assert.ok(of("```js\nconst a = 1;\nreturn a;\n```") > of("some words that are about as long"));
  const hardest = of(`explain why; derive it; prove it ${"```function x() {\n}\n".repeat(900)}`, {
    tools: [1, 2, 3, 4],
  });
  assert.ok(hardest > 0.7 && hardest <= 1, String(hardest));
});
