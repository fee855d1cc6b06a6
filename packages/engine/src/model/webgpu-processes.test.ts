import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { fixtureCheckpoint, readModelFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";

const gpu = await openTestGpu();
const reason = typeof gpu === "string" && gpu;
if (typeof gpu !== "string") gpu[Symbol.dispose]();

test("two processes on one GPU at a time give the tokens of one", { skip: reason }, async () => {
  const fixture = readModelFixtures().find(({ name }) => name === "llama3");
  assert.ok(fixture);
  const expected = fixture.greedy.slice(0, 4);
  const script = fileURLToPath(new URL("../testing/gpu-process.js", import.meta.url));
  const args = [fixtureCheckpoint("llama3"), JSON.stringify(fixture.prompt), String(expected.length)];
  const answers: unknown[][] = [[], []];
  const end = (): void => {
    for (const child of children) if (child.connected) child.send("end");
  };
  const children = answers.map((own) => {
    const child = fork(script, args, { execArgv: [] });
    child.on("message", (tokens) => {
      own.push(tokens);
      // Neither ends before both have answered twice, so both hold the GPU at a time.
      if (answers.every(({ length }) => length >= 2)) end();
    });
    child.on("exit", end);
    return child;
  });
  const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0] as number));
  assert.deepEqual(codes, [0, 0]);
  for (const own of answers) {
    assert.ok(own.length >= 2);
    for (const tokens of own) assert.deepEqual(tokens, expected);
  }
});
