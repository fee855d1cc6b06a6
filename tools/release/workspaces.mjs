// What is published, from the workspaces themselves.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../lib/steps.mjs";

export const readManifest = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));

export const workspaceFolders = [
  ...readdirSync(join(root, "packages")).map((name) => `packages/${name}`),
  "models/octavo-mini",
  "examples",
  "bench",
];

/** Workspaces that are not private. */
export const publishedFolders = workspaceFolders.filter((folder) => readManifest(folder).private !== true);

/** All packages have one. */
export const { version } = readManifest("packages/cli");
