import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { TargetPool } from "@octavo/gateway/parts";
import { OctavoError } from "@octavo/protocol";
import { LocalDriver } from "../drivers/local/local-driver.js";
import { fakeReplicaCommand, fakeSpec, type SpecOptions, until } from "../testing/test-specs.js";
import { DeploymentController } from "./deployment-controller.js";

/** A controller over fake replicas, and all that it said. */
function start(options: SpecOptions) {
  const said: string[] = [];
  const tell = (message: string): number => said.push(message);
  const config = { cores: undefined, log: "off" };
  const driver = new LocalDriver({ config, command: fakeReplicaCommand, tell });
  const pool = new TargetPool({ name: "fake", maxQueued: -1 });
  const controller = new DeploymentController({ spec: fakeSpec(options), driver, pool, tell });
  const members = (): string[] => Array.from(pool.members, ({ name }) => name);
  return {
    said,
    driver,
    pool,
    controller,
    members,
    async [Symbol.asyncDispose]() {
      await controller.close();
      await driver.close();
    },
  };
}

describe("a deployment's controller", () => {
  it("admits replicas that are alike, and replaces one whose artifact or logits differ, saying in what", async () => {
    for (const [fault, reason] of [
      ["other-artifact", /fake-1 is not admitted: artifact digest sha256:other, the others have sha256:same/],
      ["other-logits", /fake-1 is not admitted: logits fingerprint \w+, the others have \w+/],
    ] as const) {
      const engineArgs = ["--fault", fault, "--fault-numbers", "1"];
      await using at = start({ engineArgs });
      await until(() => at.members().length === 1);
      at.controller.update(fakeSpec({ engineArgs, fields: { num_replicas: 2 } }));
      await until(() => at.members().length === 2);
      assert.ok(!at.members().includes("fake-1"));
      assert.ok(
        at.said.some((line) => reason.test(line)),
        at.said.join("\n"),
      );
    }
  });

  it("holds replicas against the fingerprint that the configuration expects", async () => {
    await using at = start({ fields: { expected_fingerprint: "0".repeat(32) } });
    await until(() => at.said.some((line) => /expected 0{32}/.test(line)));
    assert.deepEqual(at.members(), []);
  });

  it("replaces a replica that never becomes healthy", async () => {
    await using at = start({
      engineArgs: ["--fault", "never-healthy", "--fault-numbers", "0"],
      fields: { startup_timeout_s: 0.2 },
    });
    await until(() => at.members().length === 1);
    assert.notEqual(at.members()[0], "fake-0");
    assert.ok(at.said.some((line) => line.includes("not healthy within 0.2 s")));
  });

  it("takes out a replica that fails three health checks, and replaces it", async () => {
    await using at = start({ fields: { health_check_period_s: 0.02, health_check_timeout_s: 0.2 } });
    await until(() => at.members().length === 1);
    const pid = at.driver.pidOf("fake-0");
    assert.ok(pid);
    process.kill(pid, "SIGSTOP");
    await until(() => at.members().length === 1 && at.members()[0] !== "fake-0");
    assert.ok(at.said.some((line) => line.includes("3 health checks in a row failed")));
  });

  it("follows an objective: replicas are there before what is known to come, and go when its time is over", async () => {
    const autoscaling_config = { min_replicas: 1, max_replicas: 3 };
    const at = new Date(Date.now() - 60_000).toISOString().slice(11, 16);
    const prewarm = [{ at, duration_s: 3600, replicas: 3 }];
    const slo = { ttft_ms: 500, downscale_hold_s: 0 };
    await using under = start({ fields: { autoscaling_config, slo_policy: { ...slo, prewarm } } });
    await until(() => under.members().length === 3);
    assert.equal(under.controller.target, 3);
    under.controller.update(fakeSpec({ fields: { autoscaling_config, slo_policy: slo } }));
    await until(() => under.members().length === 1);
  });

  it("starts the first replica for a request that waits, and goes back to zero", async () => {
    await using at = start({
      fields: {
        autoscaling_config: {
          min_replicas: 0,
          downscale_delay_s: 0.3,
          metrics_interval_s: 0.1,
          look_back_period_s: 0.2,
        },
      },
    });
    await until(() => at.said.length === 0 && at.controller.target === 0);
    const waiting = new AbortController();
    const turn = at.pool.turn(
      { arrivedMs: performance.now(), tokens: 1, isFirst: true },
      () => at.members().length > 0,
      () => waiting.signal,
    );
    await turn;
    assert.equal(at.members().length, 1);
    await until(() => at.members().length === 0 && at.controller.target === 0);
  });

  it("serving goes on with the replicas known last while what runs them does not answer", async () => {
    await using at = start({ fields: { num_replicas: 2 } });
    await until(() => at.members().length === 2);
    const observe = at.driver.observe.bind(at.driver);
    at.driver.observe = async () => {
      throw new OctavoError("runner_unavailable", "no answer");
    };
    await until(() => !at.controller.isReachable);
    assert.equal(at.members().length, 2);
    at.driver.observe = observe;
    await until(() => at.controller.isReachable);
    assert.equal(at.members().length, 2);
  });

  it("verify: asks all replicas again who they are", async () => {
    await using at = start({ fields: { num_replicas: 2 } });
    await until(() => at.members().length === 2);
    assert.deepEqual(
      (await at.controller.verify()).map(({ difference }) => difference),
      [undefined, undefined],
    );
  });
});
