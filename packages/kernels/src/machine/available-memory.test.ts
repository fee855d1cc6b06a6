import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { availableMemoryBytes } from "./available-memory.js";

const gibibyte = 2 ** 30;
const meminfo = "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n";
const available = (contents: Record<string, string>) =>
  availableMemoryBytes((path) => ({ "/proc/meminfo": meminfo, ...contents })[path]);

describe("available memory", () => {
  test("without limits it is the machine's", () => {
    assert.equal(available({}), 8 * gibibyte);
    assert.equal(available({ "/sys/fs/cgroup/memory.max": "max\n" }), 8 * gibibyte);
    const unlimited = { "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n" };
    assert.equal(available(unlimited), 8 * gibibyte);
    assert.ok(availableMemoryBytes(() => undefined) > 0);
  });

  test("a limit counts less what is used, but not what is cached and can be dropped", () => {
    const group = {
      "/sys/fs/cgroup/memory.max": `${4 * gibibyte}\n`,
      "/sys/fs/cgroup/memory.current": `${3 * gibibyte}\n`,
    };
    assert.equal(available(group), gibibyte);
    const stat = `anon 5\ninactive_file ${2 * gibibyte}\nactive_file 7\n`;
    assert.equal(available({ ...group, "/sys/fs/cgroup/memory.stat": stat }), 3 * gibibyte);
    const over = { ...group, "/sys/fs/cgroup/memory.current": `${5 * gibibyte}\n` };
    assert.equal(available(over), 0);
    assert.equal(available({ ...group, "/sys/fs/cgroup/memory.high": `${3.5 * gibibyte}\n` }), gibibyte / 2);
  });

  test("limits above the machine's memory change nothing", () => {
    const group = {
      "/sys/fs/cgroup/memory.max": `${64 * gibibyte}\n`,
      "/sys/fs/cgroup/memory.current": "0\n",
    };
    assert.equal(available(group), 8 * gibibyte);
  });

  test("every group above the own one holds, in both versions", () => {
    const nested = {
      "/proc/self/cgroup": "0::/pod/container\n",
      "/sys/fs/cgroup/pod/container/memory.max": "max\n",
      "/sys/fs/cgroup/pod/memory.max": `${2 * gibibyte}\n`,
      "/sys/fs/cgroup/pod/memory.current": `${gibibyte}\n`,
    };
    assert.equal(available(nested), gibibyte);
    const old = {
      "/proc/self/cgroup": "4:memory:/docker/0123\n0::/\n",
      "/sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes": `${6 * gibibyte}\n`,
      "/sys/fs/cgroup/memory/docker/0123/memory.usage_in_bytes": `${4 * gibibyte}\n`,
      "/sys/fs/cgroup/memory/docker/0123/memory.stat": `inactive_file 1\ntotal_inactive_file ${gibibyte}\n`,
    };
    assert.equal(available(old), 3 * gibibyte);
  });
});
