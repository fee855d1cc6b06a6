import assert from "node:assert/strict";
import test from "node:test";
import { Random } from "@octavo/statistics";
import { type RolloutConfig, rolloutSchema } from "./rollout-config.js";
import {
  type RolloutDecision,
  type RolloutEvent,
  type RolloutState,
  startRollout,
  stepRollout,
} from "./rollout-machine.js";

const base = {
  name: "int4",
  model: "chat",
  primary: { target: "bf16" },
  canary: { target: "int4" },
  gates: [{ check: "json_valid" }, { check: "latency" }],
};

const configOf = (changes: object = {}): RolloutConfig => rolloutSchema.parse({ ...base, ...changes });

/** Feeds events from the start, or another state, and returns what was decided. */
function run(
  config: RolloutConfig,
  events: Iterable<RolloutEvent>,
  from: RolloutState = startRollout(config, 0),
): { state: RolloutState; decisions: RolloutDecision[] } {
  let state = from;
  const decisions: RolloutDecision[] = [];
  for (const event of events) {
    const step = stepRollout(config, state, event);
    ({ state } = step);
    if (step.decision !== undefined) decisions.push(step.decision);
  }
  return { state, decisions };
}

const pairs = (count: number, json: number, latency = 1, atMs = 0): RolloutEvent[] =>
  Array.from({ length: count }, () => ({ type: "pair", atMs, differences: { json_valid: json, latency } }));

const command = (what: "promote" | "hold" | "resume" | "rollback" | "restart"): RolloutEvent => ({
  type: "command",
  atMs: 5,
  command: what,
  by: "alice",
  reason: "because",
});

test("a canary as good as the primary goes through all stages by evidence alone", () => {
  const config = configOf();
  const { state, decisions } = run(config, pairs(4000, 0));
  assert.equal(state.status, "promoted");
  assert.deepEqual(
    decisions.map(({ decision, fromStage, toStage, by }) => [decision, fromStage, toStage, by]),
    [
      ["promote", 0, 1, "evidence"],
      ["promote", 1, 2, "evidence"],
      ["promote", 2, 3, "evidence"],
      ["promote", 3, 4, "evidence"],
      ["complete", 4, 4, "evidence"],
    ],
  );
  for (const { stagePairs, gates, fitThreshold } of decisions) {
    assert.ok(stagePairs >= 100);
    for (const { fit } of gates) assert.ok(fit >= fitThreshold);
  }
});

test("a canary that fails at once is rolled back within a dozen pairs, whatever the stage", () => {
  const config = configOf({ gates: [{ check: "json_valid" }] });
  const { state, decisions } = run(config, pairs(50, -1));
  assert.equal(state.status, "rolled_back");
  assert.ok(state.pairs <= 12, String(state.pairs));
  const [decision] = decisions;
  assert.equal(decisions.length, 1);
  assert.equal(decision!.decision, "rollback");
  assert.equal(decision!.gates[0]!.meanDifference, -1);
  assert.ok(decision!.gates[0]!.harm >= decision!.harmThreshold);
  assert.match(decision!.reason, /json_valid differs by -100\.0 points over \d+ pairs/);
});

test("a slower canary is rolled back though its answers are as good", () => {
  const { decisions } = run(configOf(), pairs(100, 0, -1));
  assert.equal(decisions.at(-1)!.decision, "rollback");
  assert.match(decisions.at(-1)!.reason, /^latency/);
});

test("what shows neither is held, stays where it is, and is rolled back when harm shows", () => {
  const config = configOf({
    stages: [{ share: 0.05, max_pairs: 200 }, { share: 1 }],
    gates: [{ check: "json_valid", margin: 0.01, tolerance: 0.02 }],
  });
  // half a point better and worse in turn: too few pairs for a margin of one point
  const noise = Array.from({ length: 400 }, (_, index): RolloutEvent => ({
    type: "pair",
    atMs: 0,
    differences: { json_valid: index % 20 === 0 ? -1 : index % 20 === 1 ? 1 : 0 },
  }));
  const { state, decisions } = run(config, noise);
  assert.deepEqual(
    decisions.map(({ decision, stagePairs }) => [decision, stagePairs]),
    [["hold", 200]],
  );
  assert.deepEqual([state.status, state.stage], ["held", 0]);
  assert.equal(run(config, pairs(100, -1), state).state.status, "rolled_back");
  const resumed = run(config, [command("resume"), ...noise], state);
  assert.deepEqual(
    resumed.decisions.map(({ decision }) => decision),
    ["resume", "hold"],
  );
});

test("a stage lasts its time", () => {
  const config = configOf({ stages: [{ share: 0.01, min_time: "60s" }, { share: 1 }] });
  const { state } = run(config, pairs(1000, 0, 1, 59_999));
  assert.equal(state.stage, 0);
  const { decisions } = run(config, [{ type: "tick", atMs: 60_000 }], state);
  assert.equal(decisions[0]!.decision, "promote");
});

test("people decide too, and an ended rollout takes nothing but a restart or a rollback", () => {
  const config = configOf();
  const { state, decisions } = run(config, [
    command("promote"),
    command("hold"),
    command("hold"),
    command("promote"),
    command("rollback"),
    command("promote"),
    command("resume"),
    ...pairs(3, 0),
  ]);
  assert.deepEqual(
    decisions.map(({ decision, by }) => `${decision} ${by}`),
    ["promote alice", "hold alice", "promote alice", "rollback alice"],
  );
  assert.equal(state.pairs, 0);
  assert.equal(run(config, [command("restart")], state).state.status, "running");
  const promoted = run(config, pairs(4000, 0)).state;
  assert.equal(run(config, [command("rollback")], promoted).state.status, "rolled_back");
});

test("a state that was stored goes on as if it had not been, and events replay to the same decisions", () => {
  const config = configOf();
  const random = new Random(4);
  const events = Array.from({ length: 3000 }, (_, index): RolloutEvent => ({
    type: "pair",
    atMs: index,
    differences: {
      json_valid: random.pick([-1, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
      latency: random.pick([1, 1, -1]),
    },
  }));
  const whole = run(config, events);
  const half = run(config, events.slice(0, 1234));
  const stored = JSON.parse(JSON.stringify(half.state)) as RolloutState;
  const rest = run(config, events.slice(1234), stored);
  assert.deepEqual(rest.state, whole.state);
  assert.deepEqual([...half.decisions, ...rest.decisions], whole.decisions);
});

test("gates without a word in a pair wait, and keep a stage from being left", () => {
  const config = configOf({ gates: [{ check: "answered" }, { check: "latency" }] });
  const events = Array.from({ length: 500 }, (): RolloutEvent => ({
    type: "pair",
    atMs: 0,
    differences: { answered: 0 },
  }));
  assert.equal(run(config, events).state.stage, 0);
});

test("a configuration that cannot work is refused, and says where", () => {
  const refused: [object, RegExp][] = [
    [{ canary: { target: "bf16" } }, /the canary is the primary/],
    [{ stages: [{ share: 0.5 }] }, /last stage must be a canary with share 1/],
    [{ stages: [{ share: 0.5 }, { share: 0.2 }, { share: 1 }] }, /smaller share/],
    [{ stages: [{ share: 1, min_pairs: 10, max_pairs: 5 }] }, /min_pairs is above max_pairs/],
    [{ gates: [{ check: "answered" }, { check: "answered" }] }, /two gates answered/],
    [{ gates: [{ check: "within_ms" }] }, /within_ms needs ms/],
    [{ gates: [{ check: "json_schema" }] }, /needs a schema/],
    [{ gates: [{ check: "is_good" }] }, /check/],
    [{ key: "cookie" }, /expected tenant/],
    [{ rollback_alpha: 0.9 }, /rollback_alpha/],
    [{ shadow: true }, /shadow/],
  ];
  for (const [changes, message] of refused) {
    const { error } = rolloutSchema.safeParse({ ...base, ...changes });
    assert.match(JSON.stringify(error?.issues), message);
  }
});
