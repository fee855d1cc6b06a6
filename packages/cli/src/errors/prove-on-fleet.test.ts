import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { clusterCosts } from "@octavo/cluster";
import {
  type ConfigPatch,
  type FixProof,
  type RecordedWorkload,
  updateFeed,
  emptyFeed,
} from "@octavo/optimize";
import { checkPatch, patchedFileOf, readPatchable } from "./patched-files.js";
import { proveOnFleet } from "./prove-on-fleet.js";

/** Fifteen calls a second, of which one replica can serve ten: they wait longer and longer. */
const workload: RecordedWorkload = {
  requests: Array.from({ length: 120 }, (_, index) => ({
    atMs: (1000 * index) / 15,
    tenant: undefined,
    asked: undefined,
    promptTokens: 100 + 10 * (index % 20),
    cachedTokens: 0,
    outputTokens: 40 + (index % 21),
    isOfCluster: index > 30,
  })),
  numRecorded: 120,
  numWithPrompts: 0,
};
const costs = clusterCosts.parse({ base_ms: 5, per_prompt_token_ms: 0.02, per_sequence_ms: 1 });
const finding = {
  id: "a",
  kind: "serving",
  cause: "queue",
  description: "late",
  quotes: [],
  traceId: "t",
  epochMs: 1,
  tenant: undefined,
  replica: undefined,
  model: undefined,
  lostMs: undefined,
} as const;
const [entry] = updateFeed(
  emptyFeed,
  [
    {
      id: "a",
      kind: "serving",
      cause: "queue",
      wording: "late",
      numWordings: 1,
      commonestShare: 1,
      spread: 0,
      findings: [finding],
    },
  ],
  1,
).entries;

const yaml = `version: 1
deployments:
  - name: other
    model_loading_config: { model_id: o }
  - name: mini
    model_loading_config: { model_id: m }
    autoscaling_config: { min_replicas: 1, max_replicas: 1 }
`;

async function withFleet(
  run: (prove: (set: ConfigPatch["set"], seed?: number) => Promise<FixProof>) => Promise<void>,
) {
  const folder = await mkdtemp(join(tmpdir(), "octavo-fleet-"));
  try {
    const cluster = join(folder, "cluster.yaml");
    await writeFile(cluster, yaml);
    const files = await readPatchable({ config: undefined, gateway: undefined, cluster, deployment: "mini" });
    await run((patch, seed = 0) => {
      assert.equal(patchedFileOf(files, patch), "deployment");
      checkPatch(files, { of: "deployment", set: patch });
      return proveOnFleet({
        entry: entry!,
        patch,
        workload,
        files,
        costs,
        pairs: 6,
        looks: 3,
        speedup: 1,
        seed,
        leastImprovement: 0.1,
      });
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("replicas that come are proven, with intervals over seeds and what they cost; the same seed gives the same proof", () =>
  withFleet(async (prove) => {
    const patch = { "/autoscaling_config/max_replicas": 3, "/autoscaling_config/min_replicas": 2 };
    const { verdict, on, target, cost, pairs } = await prove(patch);
    assert.deepEqual([verdict, on, pairs], ["accepted", "simulator", 6]);
    assert.ok(target!.interval![0] < target!.interval![1], "seeds differ");
    assert.ok(cost.after.replica_seconds! > cost.before.replica_seconds!);
    const { at: _, ...again } = await prove(patch);
    const { at: __, ...once } = await prove(patch);
    assert.deepEqual(again, once);
  }));

test("no patch of a fleet that rights nothing is accepted, whatever the seed", () =>
  withFleet(async (prove) => {
    const wrong: readonly ConfigPatch["set"][] = [
      { "/max_queued_requests": 100_000 },
      { "/routing/strategy": "round_robin" },
      { "/routing/strategy": "least_outstanding" },
      { "/max_ongoing_requests": 1 },
      { "/autoscaling_config/upscale_delay_s": 1 },
      { "/engine_kwargs/max_num_seqs": 2 },
      // first tokens come soon where calls are refused
      { "/max_queued_requests": 1 },
    ];
    for (const set of wrong)
      for (const seed of [0, 100, 200]) {
        const { verdict, reason } = await prove(set, seed);
        assert.notEqual(verdict, "accepted", `${JSON.stringify(set)}, seed ${seed}: ${reason}`);
      }
  }));

test("a patch that the deployment does not have, or that the simulator cannot show, is refused before it runs", () =>
  withFleet(async (prove) => {
    const refused: readonly (readonly [ConfigPatch["set"], RegExp])[] = [
      [{ "/num_replica": 3 }, /cluster\.yaml with the patch.*num_replica: there is no such setting/],
      [{ "/num_replicas": 3 }, /contradict each other/],
      [{ "/autoscaling_config/max_replicas": "many" }, /max_replicas/],
      [{ "/engine_kwargs/max_numb_seqs": 4 }, /octavo serve has no such option/],
      [{ "/engine_kwargs/max_model_len": 4096 }, /which the simulator cannot show/],
      [{ "/graceful_shutdown_timeout_s": 3 }, /which the simulator cannot show/],
      [{ "/routing/strategy": "prefix_aware" }, /prefix_aware needs the section prefix/],
      [{ "/routing/strategy": "quickest" }, /strategy/],
      [{ "/name/first": "x" }, /leads to nothing that has settings/],
      [{ "/": 1 }, /is no pointer/],
      [{ "/num_replicas": 3, "max-num-seqs": 4 }, /a patch changes one file/],
    ];
    for (const [set, says] of refused)
      await assert.rejects(async () => prove(set), { code: "invalid_option", message: says });
  }));
