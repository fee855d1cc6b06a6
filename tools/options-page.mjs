// docs/reference/options.md, from the rows that flags, defaults and checks derive from.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./lib/steps.mjs";

const compiled = (path) => import(pathToFileURL(join(root, path)).href);

/** The page as it should be. */
export async function optionsPage() {
  const { commandTree } = await compiled("packages/cli/dist/program.js");
  const { helpOf } = await compiled("packages/cli/dist/command.js");
  const { loadingOptions, schedulingOptions } = await compiled(
    "packages/engine/dist/options/loading-options.js",
  );
  const { serverOptions } = await compiled("packages/server/dist/config.js");

  const loadOptions = { ...loadingOptions, ...schedulingOptions };
  const keyOf = (name) =>
    [Object.hasOwn(loadOptions, name) && "load", Object.hasOwn(serverOptions, name) && "server"]
      .filter(Boolean)
      .map((where) => `\`${name}\` (${where})`)
      .join(", ");
  const cell = (text) => text.replaceAll("|", "\\|").replaceAll(/\n/g, " ");
  const describe = (row) => cell(helpOf(row).replaceAll("<", "\\<"));
  const range = ({ type }) =>
    / (from|of at|above) /.test(type.expects) ? type.expects.replace(/, as text such as [^,]*,/, "") : "";

  const page = [
    "# Options",
    "",
    "Every flag of every command, and for `octavo serve` the name that `LLM.load` (load) and `resolveServerConfig` (server) know",
    "it by. This page is written by `node tools/readme.mjs` from the rows that the flags, the library options, their checks and",
    "their defaults derive from. A flag may be given as `--name value` or `--name=value`; counts take vLLM's suffixes (`4k` is",
    "4000, `4K` is 4096), sizes those of 1024 (`512MiB`, `2g`). Library options are in bytes and milliseconds. `octavo serve` reads",
    "each from a variable too, `OCTAVO_MAX_MODEL_LEN` for `--max-model-len`, and from the file of `--config`.",
    "",
  ];
  const known = new Map();
  const visit = async ({ commands }, path) => {
    for (const [name, node] of Object.entries(commands)) {
      const full = `${path} ${name}`;
      if (node.commands) {
        await visit(node, full);
        continue;
      }
      const { options, arguments: args = {} } = (await node.load()).default;
      const isServe = full === "octavo serve";
      page.push(
        `## ${[full, ...Object.keys(args)].join(" ").replaceAll("<", "\\<")}`,
        "",
        `${node.summary[0].toUpperCase()}${node.summary.slice(1)}.`,
        "",
      );
      for (const [syntax, help] of Object.entries(args)) page.push(`- \`${syntax}\`: ${help}`, "");
      const entries = Object.entries(options);
      for (const group of new Set(entries.map(([, row]) => row.group))) {
        const rows = entries.filter(([, row]) => row.group === group);
        const table = [
          isServe ? "| flag | library option | what it is | accepts |" : "| flag | what it is | accepts |",
          isServe ? "| --- | --- | --- | --- |" : "| --- | --- | --- |",
          ...rows.map(([key, row]) => {
            const flags = row.flag === undefined ? [] : [row.flag, ...(row.aliases ?? [])];
            const cells = [flags.map((flag) => `\`${flag}\``).join(", "), describe(row), range(row)];
            if (isServe) cells.splice(1, 0, keyOf(key));
            return `| ${cells.join(" | ")} |`;
          }),
        ];
        const first = known.get(table.join("\n"));
        known.set(table.join("\n"), first ?? full);
        if (group !== undefined) page.push(`### ${group}`, "");
        page.push(...(first === undefined ? table : [`As for \`${first}\`.`]), "");
      }
    }
  };
  await visit(commandTree, "octavo");
  return `${page.join("\n").trimEnd()}\n`;
}
