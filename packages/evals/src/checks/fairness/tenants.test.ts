import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import { observation } from "../testing/observation.js";
import { tenantFairnessCheck } from "./check.js";
import { tenantFairnessSettings } from "./settings.js";

interface Cluster {
  readonly seed: number;
  readonly requests?: number;
  readonly slowdown?: number;
  /** Chance that an answer of the small tenant goes wrong beside others. */
  readonly wrong?: number;
  readonly graded?: boolean;
}

function cluster({
  seed,
  requests = 120,
  slowdown = 1,
  wrong = 0,
  graded = false,
}: Cluster): readonly Observation[] {
  const random = new Random(seed);
  const seen: Observation[] = [];
  for (const condition of ["solo", "shared"])
    for (let index = 0; index < requests; index++) {
      const isShared = condition === "shared";
      const isWrong = isShared && random.uniform() < wrong;
      const ms = 100 * Math.exp(0.2 * random.normal()) * (isShared ? slowdown : 1);
      const good = graded ? 0.8 + 0.2 * random.uniform() : 1;
      seen.push(
        observation({
          caseId: `case-${index}`,
          condition,
          tenant: "small",
          replica: `r${index % 2}`,
          scheduledEpochMs: 1000 * index,
          firstTokenMs: ms / 10,
          durationMs: ms,
          scores: { ok: isWrong ? 0 : good },
        }),
      );
      if (isShared)
        for (let other = 0; other < 4; other++)
          seen.push(
            observation({
              caseId: `case-${index}`,
              condition,
              tenant: "large",
              replica: `r${other % 2}`,
              scheduledEpochMs: 1000 * index + other,
              firstTokenMs: 10,
              durationMs: 100,
              scores: { ok: good },
            }),
          );
    }
  return seen;
}

const quick = tenantFairnessSettings.parse({ resamples: 400 });
const judge = (seen: readonly Observation[]) => tenantFairnessCheck.judge(seen, quick);

describe("tenant-fairness", () => {
  it("passes a tenant that neither waits longer nor gets worse answers", () => {
    const result = judge(cluster({ seed: 1 }));
    assert.equal(result.verdict, "pass", result.summary);
    assert.ok(result.figures.some(({ kind }) => kind === "heatmap"));
  });

  it("finds worse answers that the published p99 of a score cannot see, in 20 of 20 runs", () => {
    for (let seed = 0; seed < 20; seed++) {
      const result = judge(cluster({ seed, wrong: 0.3 }));
      assert.equal(result.verdict, "fail", `seed ${seed}`);
      assert.equal(result.ruleOfThumb.tripped, false);
      const small = result.ruleOfThumb.rows.find(([tenant]) => tenant === "small");
      assert.equal(small?.at(-1), 1, "the best tail");
    }
    assert.ok(judge(cluster({ seed: 1, wrong: 0.3 })).notes.some((note) => note.includes("best tail")));
  });

  it("finds waiting, in 20 of 20 runs", () => {
    for (let seed = 0; seed < 20; seed++)
      assert.equal(judge(cluster({ seed, slowdown: 8 })).verdict, "fail", `seed ${seed}`);
  });

  it("alarms in less than alpha of 2,000 runs without a difference", () => {
    let alarms = 0;
    for (let seed = 0; seed < 2000; seed++)
      if (judge(cluster({ seed, requests: 60 })).verdict === "fail") alarms += 1;
    assert.ok(alarms <= 100, `${alarms} of 2000`);
  });

  it("looks at the worst of graded scores too", () => {
    const result = judge(cluster({ seed: 3, wrong: 0.06, graded: true, requests: 300 }));
    const worst = result.hypotheses.find(({ name }) => name === "small: worst 10 % of ok, less than alone");
    assert.equal(worst?.verdict, "fail");
    assert.ok((worst?.estimate ?? 0) > 0.3);
  });

  it("counts answers that were scored on one side only, and lets no score pass where they are many", () => {
    const unscored = (everyNth: number, graded: boolean) =>
      cluster({ seed: 8, graded }).map((seen) =>
        seen.condition === "shared" && Number(seen.caseId.slice(5)) % everyNth === 0
          ? { ...seen, scores: { ok: null } }
          : seen,
      );
    assert.equal(judge(unscored(40, false)).verdict, "pass");
    for (const graded of [false, true]) {
      const many = judge(unscored(4, graded));
      assert.equal(many.verdict, "inconclusive", many.summary);
      assert.ok(
        many.notes.some((note) => note.startsWith("small: ok: 30 cases were scored on one side only, 25 %")),
        many.notes.join("\n"),
      );
    }
    const none = judge(unscored(1, false));
    assert.equal(none.verdict, "inconclusive");
    assert.ok(none.hypotheses.some(({ name, estimate }) => name.includes("ok") && estimate === undefined));
  });

  it("compares scores with the other tenants' where no tenant ran alone, and passes none", () => {
    const shared = (seed: number, wrong: number) =>
      cluster({ seed, wrong }).filter(({ condition }) => condition === "shared");
    assert.equal(judge(shared(4, 0.4)).verdict, "fail");
    const result = judge(shared(5, 0));
    assert.equal(result.verdict, "inconclusive");
    assert.ok(result.notes.some((note) => note.includes("No tenant has a solo run")));
    const graded = cluster({ seed: 6, wrong: 0.4, graded: true }).filter(
      ({ condition }) => condition === "shared",
    );
    assert.equal(judge(graded).verdict, "fail");
  });

  it("does not pass where more tenants could be judged than are, and says that", () => {
    const many = Array.from({ length: 18 }, (_, index) =>
      cluster({ seed: 1 })
        .filter(({ tenant }) => tenant === "small")
        .map((seen) => ({ ...seen, tenant: `tenant-${index}` })),
    ).flat();
    const result = judge(many);
    assert.ok(result.hypotheses.every(({ verdict }) => verdict === "pass"));
    assert.equal(result.verdict, "inconclusive", result.summary);
    assert.ok(result.notes.some((note) => note.includes("tenant-16, tenant-17") && note.startsWith("18 ")));
    assert.ok(!result.notes.some((note) => note.includes("want of a solo run")));
  });

  it("counts conversations, not their turns, where scores are held against the other tenants'", () => {
    // four conversations of 25 turns each, of which two went wrong: no 100 independent answers
    const turns = (tenant: string, wrong: number, conversations: number) =>
      Array.from({ length: 25 * conversations }, (_, index) =>
        observation({
          caseId: `${tenant}-${index}`,
          cluster: `${tenant}-${index % conversations}`,
          condition: "shared",
          tenant,
          scores: { ok: index % conversations < wrong ? 0 : 1 },
        }),
      );
    const few = judge([...turns("a", 2, 4), ...turns("b", 0, 12)]);
    const loss = few.hypotheses.find(({ name }) => name === "a: ok, less than the other tenants'");
    assert.equal(loss?.estimate, 0.5);
    assert.ok(loss.pValue! > 0.01, `p ${loss.pValue}`);
    assert.equal(few.verdict, "inconclusive");
    assert.equal(judge([...turns("a", 30, 60), ...turns("b", 0, 60)]).verdict, "fail");
  });

  it("computes the published rule as it is written", () => {
    const at = (tenant: string, durationMs: number, score: number) =>
      observation({ caseId: "a", condition: "shared", tenant, durationMs, scores: { g: score } });
    const many = Array.from({ length: 300 }, () => at("large", 100, 0.9));
    assert.equal(judge([...many, at("small", 150, 0.86)]).ruleOfThumb.tripped, false);
    assert.equal(judge([...many, at("small", 151, 0.9)]).ruleOfThumb.tripped, true);
    assert.equal(judge([...many, at("small", 100, 0.84)]).ruleOfThumb.tripped, true);
  });

  it("is inconclusive without observations, with one, and says what spans lack", () => {
    assert.equal(judge([]).verdict, "inconclusive");
    assert.equal(
      judge([observation({ caseId: "a", condition: "shared", tenant: "t" })]).verdict,
      "inconclusive",
    );
    const { notes } = judge([observation({ caseId: "a", condition: "shared" })]);
    assert.ok(notes.some((note) => note.includes("tenant_id")));
    assert.ok(notes.some((note) => note.includes("which replica")));
  });
});
