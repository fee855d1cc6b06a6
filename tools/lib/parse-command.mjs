import { createProgram } from "../../packages/cli/dist/program.js";

/** Parses a command line of `octavo` and runs nothing; throws what is wrong with it. */
export async function parseCommand(words) {
  const program = await createProgram(words);
  const quiet = { writeOut: () => undefined, writeErr: () => undefined, outputError: () => undefined };
  const prepare = (command) => {
    command.exitOverride().configureOutput(quiet);
    if (command.commands.length === 0) command.action(() => undefined);
    for (const each of command.commands) prepare(each);
  };
  prepare(program);
  await program.parseAsync(words, { from: "user" });
}
