import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { test } from "node:test";
import { defaultThreadCount } from "./default-thread-count.js";

const files = (contents: Record<string, string>) => (path: string) => contents[path];
const siblings = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
const processors = availableParallelism();

test("without any limit every processor counts", () => {
  assert.equal(defaultThreadCount(files({})), processors);
  assert.equal(
    defaultThreadCount(files({ [siblings]: "0\n", "/sys/fs/cgroup/cpu.max": "max 100000\n" })),
    processors,
  );
});

test("hyperthreads of a core count once", () => {
  const half = Math.ceil(processors / 2);
  assert.equal(defaultThreadCount(files({ [siblings]: "0,64\n" })), half);
  assert.equal(defaultThreadCount(files({ [siblings]: "0-1\n" })), half);
});

test("a quota of the control group is a limit, but never below one", () => {
  assert.equal(defaultThreadCount(files({ "/sys/fs/cgroup/cpu.max": "150000 100000\n" })), 1);
  assert.equal(defaultThreadCount(files({ "/sys/fs/cgroup/cpu.max": "20000 100000\n" })), 1);
  const old = {
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
  };
  assert.equal(defaultThreadCount(files(old)), 1);
  const unlimited = {
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
  };
  assert.equal(defaultThreadCount(files(unlimited)), processors);
});
