// `node tools/release/release.mjs VERSION`: what makes a release of this tree. Sets the version of every package and what they need of each
// other, dates the changelog's section, runs every check, commits and tags; pushing the tag publishes (.github/workflows/release.yml).
// `--notes vVERSION` prints a version's section of the changelog.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fail, must, root, say } from "../lib/steps.mjs";
import { readManifest, version as current, workspaceFolders } from "./workspaces.mjs";

const changelog = join(root, "CHANGELOG.md");

/** The text of a section without its heading, which is a word and maybe a date. Throws where there is none, or it is empty. */
export function sectionOf(text, heading) {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => `${line} `.startsWith(`## ${heading} `));
  const end = lines.findIndex((line, index) => index > start && line.startsWith("## "));
  const body =
    start < 0
      ? ""
      : lines
          .slice(start + 1, end < 0 ? undefined : end)
          .join("\n")
          .trim();
  if (body === "") throw new Error(`CHANGELOG.md says nothing under "${heading}"`);
  return `${body}\n`;
}

/** A manifest at another version, with its needs of other workspaces. */
export function atVersion(manifest, version, names) {
  const needs = (list) =>
    list &&
    Object.fromEntries(
      Object.entries(list).map(([name, wanted]) => [name, names.has(name) ? version : wanted]),
    );
  return Object.fromEntries(
    Object.entries(manifest).map(([key, value]) => {
      if (key === "version") return [key, version];
      return [key, /^(dev|optional|peer)?dependencies$/i.test(key) ? needs(value) : value];
    }),
  );
}

/** Whether `next` is a version that comes after `before`. */
export function follows(next, before) {
  const parts = (text) => /^(\d+)\.(\d+)\.(\d+)(-[\w.]+)?$/.exec(text)?.slice(1);
  const [one, other] = [parts(next), parts(before)];
  if (one === undefined || other === undefined) return false;
  const at = [0, 1, 2].find((index) => Number(one[index]) !== Number(other[index]));
  if (at !== undefined) return Number(one[at]) > Number(other[at]);
  if (one[3] === undefined || other[3] === undefined) return one[3] === undefined && other[3] !== undefined;
  return one[3].localeCompare(other[3], "en", { numeric: true }) > 0;
}

async function release(version) {
  if (!follows(version, current)) fail(`${version} does not come after ${current}`);
  const git = (...args) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  if (git("status", "--porcelain") !== "") fail("there are changes that are not committed");
  const text = readFileSync(changelog, "utf8");
  sectionOf(text, "Unreleased");
  const names = new Set(workspaceFolders.map((folder) => readManifest(folder).name));
  for (const folder of workspaceFolders) {
    const manifest = atVersion(readManifest(folder), version, names);
    writeFileSync(join(root, folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  }
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(changelog, text.replace("## Unreleased", `## Unreleased\n\n## ${version} (${date})`));
  await must("the lock file", "npm", ["install", "--package-lock-only", "--no-audit", "--no-fund"]);
  await must("the checks", process.execPath, ["tools/check.mjs"]);
  git("commit", "--all", "--message", `release ${version}`);
  git("tag", "--annotate", `v${version}`, "--message", `octavo ${version}`);
  say(`committed and tagged; publish it with: git push --follow-tags`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [first, second] = process.argv.slice(2);
  if (first === "--notes") {
    try {
      process.stdout.write(sectionOf(readFileSync(changelog, "utf8"), (second ?? "").replace(/^v/, "")));
    } catch (error) {
      fail(error.message);
    }
  } else if (first === undefined) fail("usage: node tools/release/release.mjs VERSION");
  else await release(first);
}
