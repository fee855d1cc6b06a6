// Type-checks the programs that documents print.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "./steps.mjs";

/** What pages say in words before a program: the imports and values that it uses, by what the program begins with. */
const given = [
  [
    'const row = checkNamed("jitter")',
    `import { checkNamed, type Observation } from "octavo/evals";
declare const observations: readonly Observation[];
declare const settings: object;`,
  ],
  ['const llm = await LLM.load("Qwen/Qwen3-8B"', 'import { LLM } from "octavo/engine";'],
  ['await using llm = await LLM.load("Qwen', 'import { LLM } from "octavo/engine";'],
  [
    "for await (const { text } of llm.generate",
    'import type { LLM } from "octavo/engine";\ndeclare const llm: LLM;',
  ],
  [
    "const octavo = createOctavo(",
    'import { generateText } from "ai";\nimport { createOctavo } from "octavo/ai-sdk";',
  ],
  [
    "const answer = await client.chat.completions.create(",
    'import type OpenAI from "openai";\ndeclare const client: OpenAI;\ndeclare const bytes: Buffer;',
  ],
  [
    "const answer = await client.chat.completions.parse(",
    `import type OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
declare const client: OpenAI;
const Person = z.object({ name: z.string() });`,
  ],
  [
    'import { functionTarget } from "octavo/evals"',
    `import type { LLM } from "octavo/engine";
import type { OptimizeOptions } from "octavo/optimize";
declare const llm: LLM;
declare const { teacher, evaluators, cases, seed, parts, optimizer, budget }: OptimizeOptions;`,
  ],
];

/** Programs that are not checked, by how they begin, and why. */
export const unchecked = [
  ["export const gemmaFamily", "an excerpt of packages/artifacts/src/families/gemma.ts"],
  [
    "import { ChatOpenAI }",
    "its package is no dependency; packages/server/src/frameworks.test.ts runs with it",
  ],
  ['import { OpenAI } from "@llamaindex', "its package is no dependency, as above"],
];

/** Signatures of the library's pages were written by the compiler. */
export const isProgram = (code) =>
  !/^(?:(?:abstract )?class|function|interface|type|const \w+(?: = "[^"]*";\n$|: ))/.test(code) &&
  !unchecked.some(([beginning]) => code.startsWith(beginning));

/** What the compiler says of programs, each with the name of its block. */
export function typeProblems(programs) {
  const folder = mkdtempSync(join(tmpdir(), "octavo-programs-"));
  try {
    for (const [index, { code }] of programs.entries()) {
      const before = given.find(([beginning]) => code.startsWith(beginning))?.[1] ?? "";
      writeFileSync(join(folder, `${index}.ts`), `${before}\n${code}\nexport {};\n`);
    }
    writeFileSync(join(folder, "package.json"), '{"type": "module"}');
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    // programs print what they make or leave it to the reader
    const compilerOptions = { noEmit: true, composite: false, declarationMap: false, noUnusedLocals: false };
    const config = { extends: join(root, "tsconfig.base.json"), compilerOptions, include: ["*.ts"] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    const { stdout } = spawnSync(process.execPath, [compiler, "-p", folder], {
      encoding: "utf8",
      cwd: folder,
    });
    return stdout.split("\n").flatMap((line) => {
      const [, index, rest] = /^(\d+)\.ts\(\d+,\d+\): (.*)/.exec(line) ?? [];
      if (index !== undefined) return [`${programs[index].name}: ${rest}`];
      return /^\S/.test(line) ? [line] : [];
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}
