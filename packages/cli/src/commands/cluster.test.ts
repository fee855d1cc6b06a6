import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { availableParallelism } from "node:os";
import OpenAI from "openai";
import { runOctavo, startOctavo, type RunningOctavo } from "../testing/run-octavo.js";

interface DeploymentState {
  readonly replicas: readonly { readonly id: string; readonly state: string; readonly version: string }[];
}

const key = "0123456789abcdef";

describe("octavo cluster", () => {
  let folder: string;
  let path: string;
  let running: RunningOctavo;
  let adminUrl: string;
  let client: OpenAI;
  let said = "";

  const configure = (fields: string): Promise<void> =>
    writeFile(
      path,
      `version: 1
driver: { kind: local, log: "off" }
gateway:
  listen: { port: 0 }
  admin: { port: 0, key: "${key}" }
  access_log: "off"
deployments:
  - name: mini
    model_loading_config: { model_id: octavo-mini }
    max_ongoing_requests: 16
    ray_actor_options: { num_cpus: ${availableParallelism() > 1 ? 1 : 0} }
${fields}`,
    );

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "octavo-cluster-"));
    path = join(folder, "cluster.yaml");
    await configure("    num_replicas: 2\n    engine_kwargs: { max_model_len: 512 }\n");
    running = startOctavo(["cluster", "--config", path]);
    for (const stream of [running.child.stdout, running.child.stderr])
      stream.on("data", (text: string) => (said += text));
    await until(() => /admin http/.test(said));
    const [, url = "", admin = ""] = /cluster: (\S+), admin (\S+)/.exec(said) ?? [];
    adminUrl = admin;
    client = new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0 });
  });

  after(async () => {
    running.child.kill("SIGTERM");
    const { code, err } = await running.ended;
    await rm(folder, { recursive: true });
    assert.equal(code, 0, err);
  });

  const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await holds())) {
      assert.equal(running.child.exitCode, null, said);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const state = async (): Promise<DeploymentState> => {
    const answer = await fetch(`${adminUrl}/admin/cluster`, { headers: { authorization: `Bearer ${key}` } });
    const { deployments } = (await answer.json()) as { readonly deployments: readonly DeploymentState[] };
    return deployments[0] ?? { replicas: [] };
  };
  const settled = (count: number, isNew: (replica: DeploymentState["replicas"][number]) => boolean) =>
    until(async () => {
      const { replicas } = await state();
      return replicas.length === count && replicas.every((one) => one.state === "running" && isNew(one));
    });
  const reload = async (fields: string): Promise<void> => {
    await configure(fields);
    const times = said.split("configuration reloaded").length;
    running.child.kill("SIGHUP");
    await until(() => said.split("configuration reloaded").length > times);
  };
  const ask = async (stream: boolean, seed: number): Promise<string> => {
    const fields = {
      model: "octavo-mini",
      prompt: `Count from ${seed} on:`,
      max_tokens: 48,
      seed,
      temperature: 1,
      ignore_eos: true,
    };
    if (!stream) return (await client.completions.create(fields)).choices[0]?.text ?? "";
    let text = "";
    for await (const chunk of await client.completions.create({ ...fields, stream: true }))
      text += chunk.choices[0]?.text ?? "";
    return text;
  };

  /** Asks all the while that `change` takes; every answer must be there, and be what it is without the change. */
  const underLoad = async (change: () => Promise<void>, numClients = 8): Promise<number> => {
    const expected = await Promise.all([0, 1, 2, 3].map((seed) => ask(true, seed)));
    const over = new AbortController();
    let numAnswers = 0;
    const clients = Array.from({ length: numClients }, async (_, number) => {
      while (!over.signal.aborted) {
        const text = await ask(number % 2 === 0, number % 4);
        assert.equal(text, expected[number % 4]);
        numAnswers += 1;
      }
    });
    await change().finally(() => over.abort());
    await Promise.all(clients);
    return numAnswers;
  };

  it("kill -9 of a replica under load: no request fails, texts are the same, the replica is replaced", async () => {
    await settled(2, () => true);
    const earlier = (await state()).replicas.map(({ id }) => id);
    await underLoad(async () => {
      const { pid = 0 } = running.child;
      const [victim] = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).split(" ");
      await new Promise((resolve) => setTimeout(resolve, 100));
      process.kill(Number(victim), "SIGKILL");
      await settled(2, () => true);
      await until(async () => (await state()).replicas.some(({ id }) => !earlier.includes(id)));
    });
    assert.match(said, /ended by itself \(SIGKILL/);
  });

  it("a rolling update under load loses nothing", async () => {
    const [first] = (await state()).replicas;
    await underLoad(async () => {
      await reload("    num_replicas: 2\n    engine_kwargs: { max_model_len: 640 }\n");
      await settled(2, ({ version }) => version !== first?.version);
    });
  });

  it("scaling down under load loses nothing", async () => {
    await underLoad(async () => {
      await reload("    num_replicas: 1\n    engine_kwargs: { max_model_len: 640 }\n");
      await settled(1, () => true);
    });
  });

  it("a new replica has the hottest prefixes, each under its own salt, before its first request", async () => {
    const engine = "    engine_kwargs: { max_model_len: 640 }\n";
    const askOf = async (replica: string | undefined, salt: string) => {
      const fields = {
        model: "octavo-mini",
        prompt: `You are a librarian. ${"Be short and kind. ".repeat(12)} Who wrote Emma?`,
        max_tokens: 16,
        temperature: 0,
        cache_salt: salt,
      };
      const headers = replica === undefined ? {} : { "x-octavo-replica-id": replica };
      const { choices, usage } = await client.completions.create(fields, { headers });
      return { text: choices[0]?.text, cached: usage?.prompt_tokens_details?.cached_tokens ?? 0 };
    };
    const [old] = (await state()).replicas;
    const { text } = await askOf(undefined, "acme");
    for (let times = 0; times < 2; times += 1) assert.ok((await askOf(undefined, "acme")).cached > 64);
    await reload(`    num_replicas: 2\n    prefix_warm_up_timeout_s: 60\n${engine}`);
    await settled(2, () => true);
    const fresh = (await state()).replicas.find(({ id }) => id !== old?.id)?.id;
    assert.deepEqual(await askOf(fresh, "bravo"), { text, cached: 0 });
    const first = await askOf(fresh, "acme");
    assert.equal(first.text, text);
    assert.ok(first.cached > 64, `${first.cached} tokens`);
    assert.match(said, new RegExp(`${fresh} is ready .* tokens of hot prefixes cached`));
  });

  it("follows an objective instead of Ray's rule where cluster.yaml has one", async () => {
    const at = new Date(Date.now() - 60_000).toISOString().slice(11, 16);
    const scaling = (more: string): string =>
      `    autoscaling_config: { min_replicas: 1, max_replicas: 2 }\n    slo_policy: { ttft_ms: 500, downscale_hold_s: 3${more} }\n    engine_kwargs: { max_model_len: 640 }\n`;
    await reload(scaling(""));
    await settled(1, () => true);
    // twice what one replica takes at a time: tokens wait, and nothing else says that a replica is missing
    const from = said.length;
    await underLoad(() => settled(2, () => true), 32);
    assert.match(said.slice(from), /mini: 1 → 2 replicas for \d+ requests/);
    await settled(1, () => true);
    await reload(scaling(`, prewarm: [{ at: "${at}", duration_s: 3600, replicas: 2 }]`));
    await settled(2, () => true);
  });

  it("at zero replicas the first request waits for one", async () => {
    const scaling = "min_replicas: 0, downscale_delay_s: 0, metrics_interval_s: 0.1, look_back_period_s: 0.2";
    await reload(`    autoscaling_config: { ${scaling} }\n    engine_kwargs: { max_model_len: 640 }\n`);
    await until(async () => (await state()).replicas.length === 0);
    assert.ok((await ask(true, 1)).length > 0);
  });

  it("refuses a wrong configuration with its line and goes on; check says what cannot be met", async () => {
    await configure("    num_replicas: many\n");
    running.child.kill("SIGHUP");
    await until(() => /not reloaded: cluster\.yaml:12:\d+: .*num_replicas/.test(said));
    assert.ok((await ask(false, 1)).length > 0);
    await configure("    num_replicas: 5000\n");
    const check = await runOctavo(["cluster", "check", "--config", path]);
    if (availableParallelism() > 1) {
      assert.equal(check.code, 1);
      assert.match(check.err, /all replicas at their most take 5000 cores/);
    } else assert.equal(check.code, 0, check.err);
  });
});
