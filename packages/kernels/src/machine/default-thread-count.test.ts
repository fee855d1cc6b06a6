import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { describe, test } from "node:test";
import { defaultThreadCount, processorCount } from "./default-thread-count.js";

const files = (contents: Record<string, string>) => (path: string) => contents[path];

/** A machine whose processors 2n and 2n + 1, or n and n + count / 2, are one core. */
function machine(count: number, pairing: "neighbours" | "halves" | "none", allowed = `0-${count - 1}`) {
  const contents: Record<string, string> = {
    "/proc/self/status": `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${allowed}\n`,
  };
  for (let id = 0; id < count; id++) {
    const first = pairing === "neighbours" ? id - (id % 2) : id % (count / 2);
    const siblings =
      pairing === "none"
        ? `${id}`
        : pairing === "halves"
          ? `${first},${first + count / 2}`
          : `${first}-${first + 1}`;
    contents[`/sys/devices/system/cpu/cpu${id}/topology/thread_siblings_list`] = `${siblings}\n`;
  }
  return contents;
}

describe("default number of threads", () => {
  test("without any file every processor counts", () => {
    assert.equal(defaultThreadCount(files({})), availableParallelism());
    const mangled = { "/proc/self/status": "Cpus_allowed_list:\tall of them\n" };
    assert.equal(defaultThreadCount(files(mangled)), availableParallelism());
  });

  test("hyperthreads of a core count once", () => {
    assert.equal(defaultThreadCount(files(machine(16, "none"))), 16);
    assert.equal(defaultThreadCount(files(machine(16, "halves"))), 8);
    assert.equal(defaultThreadCount(files(machine(16, "neighbours"))), 8);
    assert.equal(processorCount(files(machine(16, "neighbours"))), 16);
  });

  test("only processors of the affinity mask count, each core once", () => {
    assert.equal(defaultThreadCount(files(machine(16, "halves", "0-3"))), 4);
    assert.equal(defaultThreadCount(files(machine(16, "neighbours", "0-3"))), 2);
    assert.equal(defaultThreadCount(files(machine(16, "neighbours", "1,3,8-9"))), 3);
    assert.equal(processorCount(files(machine(16, "neighbours", "1,3,8-9"))), 4);
  });

  test("a quota of the control group is a limit, but never below one", () => {
    const quota = (text: string) =>
      defaultThreadCount(files({ ...machine(16, "none"), "/sys/fs/cgroup/cpu.max": text }));
    assert.equal(quota("max 100000\n"), 16);
    assert.equal(quota("600000 100000\n"), 6);
    assert.equal(quota("350000 100000\n"), 3);
    assert.equal(quota("20000 100000\n"), 1);
    assert.equal(quota("garbage\n"), 16);
  });

  test("version 1 writes its quota in two files", () => {
    const quota = (text: string) =>
      defaultThreadCount(
        files({
          ...machine(16, "none"),
          "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": text,
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        }),
      );
    assert.equal(quota("400000\n"), 4);
    assert.equal(quota("-1\n"), 16);
  });

  test("the group's own quota and those above it all hold", () => {
    const nested = {
      ...machine(16, "none"),
      "/proc/self/cgroup": "0::/serving.slice/octavo.service\n",
      "/sys/fs/cgroup/serving.slice/octavo.service/cpu.max": "800000 100000\n",
      "/sys/fs/cgroup/serving.slice/cpu.max": "500000 100000\n",
    };
    assert.equal(defaultThreadCount(files(nested)), 5);
    const old = {
      ...machine(16, "none"),
      "/proc/self/cgroup": "4:memory:/a\n2:cpu,cpuacct:/docker/0123\n0::/\n",
      "/sys/fs/cgroup/cpu/docker/0123/cpu.cfs_quota_us": "200000\n",
      "/sys/fs/cgroup/cpu/docker/0123/cpu.cfs_period_us": "100000\n",
    };
    assert.equal(defaultThreadCount(files(old)), 2);
  });

  test("a group that lies outside of what can be seen leaves the root's limit", () => {
    const outside = {
      ...machine(16, "none"),
      "/proc/self/cgroup": "0::/../../other\n",
      "/sys/fs/cgroup/cpu.max": "300000 100000\n",
    };
    assert.equal(defaultThreadCount(files(outside)), 3);
  });
});
