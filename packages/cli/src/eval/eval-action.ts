import { exitCodeOfError, exitCodes } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import type { CommandAction, OctavoCommand } from "../command.js";
import { reportError } from "../output/report-error.js";

/** The exit codes of `octavo eval` distinguish failures; flags that cannot be read count as configuration, as settings in a file do. */
export const evalCommands = {
  prepare(command: OctavoCommand): void {
    command.exitOverride(({ exitCode }) => {
      process.exit(exitCode === 0 ? exitCodes.pass : exitCodes.config);
    });
  },
  wrap(action: CommandAction): CommandAction {
    return async (...args) => {
      try {
        await action(...args);
      } catch (thrown) {
        const error = OctavoError.from(thrown);
        reportError(error);
        process.exitCode = exitCodeOfError(error.code);
      }
    };
  },
};
