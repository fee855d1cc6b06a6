import { readFileSync } from "node:fs";

/** The content of a file, undefined where there is none; tests put files of other machines in its place. */
export type ReadFile = (path: string) => string | undefined;

export const readIfThere: ReadFile = (path) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
};

const mountPoint = "/sys/fs/cgroup";

/**
 * Folders of the control groups that this process is in, whose limits all hold: its own first, the root's last; version 2's
 * tree, then version 1's of the controller (cgroups(7)). A container that does not see the groups above its own has them
 * mounted at the root, so the root is always asked.
 */
export function controlGroupFolders(controller: "cpu" | "memory", read: ReadFile = readIfThere): string[] {
  let unified = "/";
  let own = "/";
  for (const line of read("/proc/self/cgroup")?.split("\n") ?? []) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    if (controllers === "") unified = path;
    else if (controllers.split(",").includes(controller)) own = path;
  }
  return [...withParents(mountPoint, unified), ...withParents(`${mountPoint}/${controller}`, own)];
}

function withParents(root: string, path: string): string[] {
  const names = path.split("/").filter((name) => name !== "");
  // A group outside of the namespace's root is written with dots; its folder is not visible from here.
  if (names.includes("..")) return [root];
  return Array.from({ length: names.length + 1 }, (_, up) =>
    [root, ...names.slice(0, names.length - up)].join("/"),
  );
}
