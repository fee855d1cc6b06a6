import { exitCodeOfError, exitCodes } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import type { Command } from "commander";

/** An action whose failures have the exit codes of `octavo eval`, which tell them apart. */
export function evalAction<Arguments extends readonly unknown[]>(
  action: (...args: Arguments) => Promise<void>,
): (...args: Arguments) => Promise<void> {
  return async (...args) => {
    try {
      await action(...args);
    } catch (thrown) {
      const error = OctavoError.from(thrown);
      process.exitCode = exitCodeOfError(error.code);
      process.stderr.write(`octavo: ${error.message} [${error.code}]\n`);
      if (error.code === "internal_error" && error.cause instanceof Error)
        process.stderr.write(`${error.cause.stack}\n`);
    }
  };
}

/** Flags that cannot be read are a matter of configuration, as are settings in a file. */
export function withConfigExit(command: Command): Command {
  return command.exitOverride(({ exitCode }) => {
    process.exit(exitCode === 0 ? exitCodes.pass : exitCodes.config);
  });
}
