// Fills the marked parts of documents: snippets from examples, figures from bench/results, the list of checks from their pages;
// and writes the pages that are derived whole.
// `--check` fails when they are stale.
// `<!-- figures NAME ... -->` shows what of these benchmarks has a bound (NAME=TEXT: and TEXT in its name), `<!-- figures -->`
// everything.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fail, filesBelow, root } from "./lib/steps.mjs";
import { libraryPages } from "./library-pages.mjs";
import { optionsPage } from "./options-page.mjs";
import { vllmFlagsPage } from "./vllm-flags-page.mjs";

/** Documents with marked parts. */
export const filledDocuments = ["README.md", ...filesBelow("docs", (path) => path.endsWith(".md"))].filter(
  (path) => /^<!-- (?:snippet:|figures|checks)/m.test(readFileSync(join(root, path), "utf8")),
);

/** Documents that are written whole. */
export const writtenDocuments = {
  "docs/reference/options.md": optionsPage,
  "docs/reference/vllm-flags.md": vllmFlagsPage,
  ...Object.fromEntries(Object.entries(libraryPages()).map(([path, page]) => [path, () => page])),
};

export function renderDocument(text) {
  return text
    .replace(/(<!-- snippet:(\S+) -->\n)[\s\S]*?(<!-- \/snippet -->)/g, (_, open, path, close) => {
      const code = readFileSync(join(root, path), "utf8").trimEnd();
      return `${open}\n\`\`\`ts\n${code}\n\`\`\`\n\n${close}`;
    })
    .replace(
      /(<!-- figures((?: \w[\w=-]*)*) -->\n)[\s\S]*?(<!-- \/figures -->)/g,
      (_, open, names, close) => `${open}\n${figures(names.split(" ").filter(Boolean))}\n${close}`,
    )
    .replace(
      /(<!-- checks -->\n)[\s\S]*?(<!-- \/checks -->)/g,
      (_, open, close) => `${open}\n${checks()}\n${close}`,
    );
}

/** A row for each page of a check, in the order of the table of checks: the first row of the page's own table. */
function checks() {
  const source = readFileSync(join(root, "packages/evals/src/checks/table.ts"), "utf8");
  const names = [...source.matchAll(/^ {2}checkRow\((\w+)Check\),$/gm)].map(([, name]) =>
    name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
  );
  const rows = names.flatMap((name) => {
    const page = join(root, `docs/guide/checks/${name}.md`);
    const row = existsSync(page)
      ? /^\| The published rule .*\n\| ---.*\n\| (.*) \|$/m.exec(readFileSync(page, "utf8"))
      : null;
    return row === null ? [] : [`| [${name}](${name}.md) | ${row[1]} |`];
  });
  return ["| Check | The published rule | What decides here |", "| --- | --- | --- |", ...rows, ""].join(
    "\n",
  );
}

function figures(names) {
  const folder = join(root, "bench/results");
  const results = (existsSync(folder) ? readdirSync(folder) : [])
    .filter((file) => file.endsWith(".json"))
    .map((file) => JSON.parse(readFileSync(join(folder, file), "utf8")));
  const shown =
    names.length === 0
      ? results
      : names.flatMap((wanted) => {
          const [name, text = ""] = wanted.split("=");
          return results
            .filter(({ benchmark }) => benchmark === name)
            .map((result) => withBounds(result, text));
        });
  return shown.map((result) => (tables[result.benchmark] ?? table)(result, names.length > 0)).join("\n");
}

/** Without the cases that nothing is demanded of, or whose name lacks `text`; all of them where none has a bound. */
function withBounds(result, text) {
  const bounded = new Set(result.cases.filter(({ target }) => target).map(({ name }) => name));
  return bounded.size === 0
    ? result
    : { ...result, cases: result.cases.filter(({ name }) => bounded.has(name) && name.includes(text)) };
}

const tables = { cpu: peerTable, formats: formatTable };

const limitNames = { readGBps: "read bandwidth", int8Gops: "int8 peak", bf16Gflops: "bf16 peak" };

/** A row per figure: Octavo's own value, its share of the machine's limit, and the ratio to each peer, bounds beside them. */
export function peerTable({ benchmark, machine, commit, date, cases }) {
  const rounded = (value) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
  const bound = (target, on, scale, unit) => {
    const value = target?.on === on ? (target.atLeast ?? target.atMost) : undefined;
    if (value === undefined) return "";
    return ` (${target.atLeast === undefined ? "≤" : "≥"} ${Number((value * scale).toFixed(2))}${unit})`;
  };
  const peers = [...new Set(cases.flatMap(({ peerName }) => peerName ?? []))].toSorted((a, b) =>
    a < b ? -1 : 1,
  );
  const rows = [...new Set(cases.map(({ name }) => name))].map((name) => {
    const lines = cases.filter((line) => line.name === name);
    const own = lines.find(({ peerName }) => peerName === undefined) ?? lines[0];
    const share = own.limit?.octavoShare;
    const cells = [
      name,
      `${rounded(own.octavo)} ${own.unit}${bound(own.target, "octavo", 1, "")}`,
      share === undefined
        ? ""
        : `${Math.round(share * 100)} % of ${limitNames[own.limit.name]}${bound(own.target, "share of limit", 100, " %")}`,
      ...peers.map((peer) => {
        const line = lines.find(({ peerName }) => peerName === peer);
        return line === undefined ? "" : `${line.ratio.toFixed(2)}×${bound(line.target, "ratio", 1, "×")}`;
      }),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  const commits = [...new Set(cases.map(({ run }) => run.commit))];
  return [
    `\`npm run bench -- ${benchmark}\` on ${machine.cores} cores of ${machine.cpu}, Node ${machine.node}, ${date} (${commits.length > 1 ? commits.join(", ") : commit}):`,
    "",
    `| | Octavo | of the machine's limit | ${peers.map((peer) => `ratio to ${peer}`).join(" | ")} |`,
    `| --- | ---: | ---: |${peers.map(() => " ---: |").join("")}`,
    ...rows,
    "",
  ].join("\n");
}

/**
 * A row per format: its bytes and speeds, these beside bf16's of the same run, and what it costs in quality. Parts that were measured of
 * no format are left out, of some are empty there. Compact leaves out what only explains the rest.
 */
export function formatTable({ benchmark, machine, cases }, isCompact = false) {
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const bound = cases.find(({ speed }) => speed?.target)?.speed.target.atLeast;
  const head = (pace) => (bound === undefined ? pace : `${pace} (≥ ${bound}×)`);
  const speedCell = (pace) => (speed) =>
    `${speed.tokensPerSecond[pace].toFixed(speed.tokensPerSecond[pace] >= 100 ? 0 : 1)} (${speed.ratio[pace].toFixed(2)}×)`;
  const columns = [
    ["bytes", "speed", (speed) => `${(speed.weightBytes / 1e6).toFixed(0)} MB`],
    [head("prefill 512"), "speed", speedCell("prefill")],
    [head("decode, 1 stream"), "speed", speedCell("decode1")],
    [head("decode, 8 streams"), "speed", speedCell("decode8")],
    !isCompact && ["peak memory / bytes", "speed", (speed) => `${speed.peakMemoryRatio.toFixed(2)}×`],
    !isCompact && ["quantising: peak memory", "making", makingCell],
    ["KL", "quality", (quality) => klCell(quality, isCompact)],
    !isCompact && ["top-1 flips", "quality", (quality) => percent(quality.flips)],
    !isCompact && ["valid JSON", "quality", (quality) => percent(quality.validJson)],
    ["exact JSON", "quality", (quality) => percent(quality.exactJson)],
    ["exact tool calls", "quality", (quality) => percent(quality.exactCalls)],
  ].filter((column) => column && cases.some((one) => one[column[1]] !== undefined));
  const isTimed = cases.some(({ speed }) => speed !== undefined);
  const rows = cases.map((one) =>
    [one.name, ...columns.map(([, part, cell]) => (one[part] === undefined ? "" : cell(one[part])))].join(
      " | ",
    ),
  );
  const runs = cases.flatMap(({ quality, speed, making }) =>
    [quality, speed, making].flatMap((part) => part?.run ?? []),
  );
  const distinct = (values) => [...new Set(values)].toSorted((a, b) => (a < b ? -1 : 1)).join(", ");
  return [
    `\`npm run bench -- ${benchmark}\` on ${machine.cores} cores of ${machine.cpu}, Node ${machine.node}, ${distinct(runs.map(({ date }) => date))} (${distinct(runs.map(({ commit }) => commit))}).${isTimed ? " Bytes and tokens/s" : ""}`,
    ...(isTimed ? ["(beside them, times bf16's) are of Qwen3-0.6B's layers with random weights."] : []),
    "KL (nats a token) from bf16, JSON and tool calls are of octavo-mini on held-out cases, greedy:",
    "",
    `| format | ${columns.map(([name]) => name).join(" | ")} |`,
    `| --- |${columns.map(() => " ---: |").join("")}`,
    ...rows.map((row) => `| ${row} |`),
    "",
  ].join("\n");
}

function makingCell({ peakBytes, target }) {
  return `${(peakBytes / 1e9).toFixed(2)} GB (≤ ${(target.atMost / 1e9).toFixed(2)})`;
}

function klCell({ kl, klInterval }, isCompact) {
  if (isCompact || !klInterval) return kl.toFixed(4);
  const [low, high] = klInterval;
  return `${kl.toFixed(4)} (${low.toFixed(4)} to ${high.toFixed(4)})`;
}

function table({ benchmark, machine, commit, date, cases }) {
  const rows = cases.map(({ name, unit, octavo, target }) => {
    const bound =
      target?.atMost === undefined
        ? target?.atLeast === undefined
          ? ""
          : `≥ ${target.atLeast}`
        : `≤ ${target.atMost}`;
    return `| ${name} | ${octavo.toFixed(octavo >= 100 ? 0 : octavo >= 10 ? 1 : 2)} ${unit} | ${bound} |`;
  });
  return [
    `\`npm run bench -- ${benchmark}\` on ${machine.cores} cores of ${machine.cpu}, Node ${machine.node}, ${date} (${commit}):`,
    "",
    "| | measured | bound |",
    "| --- | ---: | ---: |",
    ...rows,
    "",
  ].join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const document of [...filledDocuments, ...Object.keys(writtenDocuments)]) {
    const path = join(root, document);
    const now = existsSync(path) ? readFileSync(path, "utf8") : "";
    const wanted = (await writtenDocuments[document]?.()) ?? renderDocument(now);
    if (now === wanted) continue;
    if (process.argv.includes("--check")) fail(`${document} is stale: run \`node tools/readme.mjs\``);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, wanted);
  }
}
