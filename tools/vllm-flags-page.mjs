// docs/reference/vllm-flags.md, from vLLM's published list of flags and the tables that `octavo serve` reads its command line with.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./lib/steps.mjs";

const compiled = (path) => import(pathToFileURL(join(root, "packages/cli/dist/options", path)).href);

/** The page as it should be. */
export async function vllmFlagsPage() {
  const { serveRows } = await compiled("serve-options.js");
  const { flagNames } = await compiled("flag-names.js");
  const { foreignFlagsByName } = await compiled("vllm/translate-flags.js");
  const { source, flags } = JSON.parse(
    readFileSync(join(root, "packages/cli/fixtures/vllm-serve-flags.json"), "utf8"),
  );
  const rows = Object.values(serveRows);
  const own = new Map(rows.flatMap((row) => flagNames(row).map((name) => [name, row])));
  const counts = { same: 0, mapped: 0, none: 0, value: 0, refused: 0 };
  const lines = flags.map(({ names }) => {
    const long = names.filter((name) => name.startsWith("--"));
    const shown = names.map((name) => `\`${name}\``).join(", ");
    const row = own.get(long.find((name) => own.has(name)));
    if (row !== undefined) {
      const flag = row.flag.split(" ")[0].replace("[no-]", "");
      const isSame = long.includes(flag);
      counts[isSame ? "same" : "mapped"] += 1;
      return `| ${shown} | ${isSame ? "the same" : `is \`${flag}\``} | |`;
    }
    const { of, effect, why } = foreignFlagsByName.get(long.find((name) => foreignFlagsByName.has(name)));
    const kind = of === undefined ? effect : "value";
    counts[kind] += 1;
    const values = of?.map((value) => `\`${value}\``).join(", ");
    const status = kind === "value" ? `only ${values}` : kind === "none" ? "no effect" : "refused";
    return `| ${shown} | ${status} | ${why.replaceAll("|", "\\|")} |`;
  });
  return `${[
    "# Flags of `vllm serve`",
    "",
    "What `octavo serve` makes of each. This page is written by `node tools/readme.mjs` from the tables that the command line is read",
    `with; a test holds them to vLLM's own list (${source}).`,
    "",
    `Of ${flags.length}: ${counts.same} are the same here, ${counts.mapped} have another name and are taken under both, ${counts.value} are taken with the values that say`,
    `what holds anyway, ${counts.none} have no effect, which a line at the start says, and ${counts.refused} are refused, with the reason and what does the same.`,
    "Underscores for dashes, `--no-enable-x` and `--disable-x`, `--speculative-config.method ngram` and short names are read as vLLM reads",
    "them, on the command line and in the file of `--config`. Flags of Octavo's own are in [options](options.md).",
    "",
    "| vLLM | here | |",
    "| --- | --- | --- |",
    ...lines,
  ].join("\n")}\n`;
}
