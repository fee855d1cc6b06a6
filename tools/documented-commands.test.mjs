// Commands that documents print can be typed: `octavo` knows them and takes their flags. tools/run-documented.mjs runs them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { LLM } from "../packages/cli/dist/engine.js";
import { blocksOf, commandsOf, oneLine, shellWords, statementsOf } from "./lib/documented-commands.mjs";
import { notRun, pages, statuses } from "./lib/documented-pages.mjs";
import { parseCommand } from "./lib/parse-command.mjs";
import { filesBelow, root } from "./lib/steps.mjs";

const documents = ["README.md", "CHANGELOG.md", ...filesBelow("docs", (path) => path.endsWith(".md"))];

test("words are those that a shell makes", () => {
  const line = `npx octavo run "a 'b' c" --set='{"x": 1}' MODEL # why\n`;
  assert.deepEqual(shellWords(line), ["npx", "octavo", "run", "a 'b' c", '--set={"x": 1}', "MODEL"]);
  assert.deepEqual(
    commandsOf("```\nA=1 octavo list --json | head\ngit diff | octavo run M \\\n  x > y\n```\n"),
    [
      ["list", "--json"],
      ["run", "M", "x"],
    ],
  );
});

let numCommands = 0;
for (const document of documents) {
  const commands = commandsOf(readFileSync(join(root, document), "utf8"));
  if (commands.length === 0) continue;
  numCommands += commands.length;
  test(`${document} prints commands that there are`, async () => {
    for (const words of commands)
      await parseCommand(words).catch((error) => {
        // files of the reader's
        if (/there is no file|there is no such file/.test(error.message)) return;
        throw new Error(`octavo ${words.join(" ")}\n${error.message}`, { cause: error });
      });
  });
}

test("documents print commands", () => assert.ok(numCommands > 60, String(numCommands)));

/** The right-hand cells of tables, which say what to type here. */
function rightHandCode(text) {
  const cells = [...text.matchAll(/^\| .* \| (.*) \|$/gm)].map(([, cell]) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code));
}

test("what stands beside other engines' commands can be typed", async () => {
  const found = rightHandCode(readFileSync(join(root, "docs/guide/coming-from.md"), "utf8"));
  const http = readFileSync(join(root, "docs/reference/http.md"), "utf8");
  const counts = { commands: 0, flags: 0, paths: 0, variables: 0, library: 0 };
  for (const code of found) {
    const [first = "", ...rest] = shellWords(code);
    const isServe = first.startsWith("--");
    if (first === "octavo" || isServe) {
      const words = isServe ? ["serve", first, ...rest] : rest;
      // a flag that is named without its value, a command without its arguments
      const isName = rest.length === (isServe ? 0 : 1);
      await parseCommand(words).catch((error) => {
        if (!isName || !/argument missing|missing required argument/.test(error.message)) throw error;
      });
      counts[isServe ? "flags" : "commands"] += 1;
    } else if (/^OCTAVO_\w+[a-zA-Z]$/.test(first)) {
      const flag = `--${first.slice("OCTAVO_".length).toLowerCase().replaceAll("_", "-")}`;
      await assert.rejects(parseCommand(["serve", flag]), /argument missing/, first);
      counts.variables += 1;
    } else if (/^(?:GET )?\/(?:v1|metrics)/.test(code)) {
      assert.ok(http.includes(code.replace("GET ", "")), code);
      counts.paths += 1;
    } else if (/^llm\.(\w+)\(/.test(code)) {
      const [, method] = /^llm\.(\w+)/.exec(code);
      assert.equal(typeof LLM.prototype[method], "function", code);
      counts.library += 1;
    }
  }
  assert.deepEqual(
    Object.entries(counts).filter(([, count]) => count < 3),
    [],
    JSON.stringify(counts),
  );
});

test("a command that is not there is found", async () => {
  for (const words of [["serv"], ["serve", "--prot", "1"], ["plan"], ["serve", "--port", "x"]])
    await assert.rejects(parseCommand(words), words.join(" "));
});

test("a command ends where its quotes and backslashes do", () => {
  const code = 'curl x -d \'{\n  "a": 1}\' # why\n# alone\noctavo run \\\n  "a # b"\n';
  assert.deepEqual(statementsOf(code), ["curl x -d '{\n  \"a\": 1}'", 'octavo run \\\n  "a # b"']);
  assert.equal(blocksOf("```\nanswer ::= yes\n```\n```\noctavo list\n```\n").length, 1);
});

test("what is not run is printed somewhere, has a reason, and is less than a quarter of it", () => {
  const printed = pages(filesBelow("docs", (path) => path.endsWith(".md")));
  const statements = printed.flatMap((page) =>
    blocksOf(readFileSync(join(root, page), "utf8")).flatMap(({ code }) => statementsOf(code).map(oneLine)),
  );
  const unused = [...notRun, ...statuses].map(([beginning]) => beginning);
  assert.deepEqual(
    unused.filter((beginning) => !statements.some((statement) => statement.startsWith(beginning))),
    [],
  );
  for (const [beginning, reason] of notRun) assert.ok(reason.length > 10, beginning);
  const left = statements.filter((statement) =>
    notRun.some(([beginning]) => statement.startsWith(beginning)),
  );
  assert.ok(left.length < statements.length / 4, `${left.length} of ${statements.length}`);
});
