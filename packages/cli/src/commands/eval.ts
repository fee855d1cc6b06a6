import { Command } from "commander";
import { evalCalibrateCommand } from "./eval-calibrate.js";
import { evalCertifyCommand } from "./eval-certify.js";
import { evalCheckCommand, evalChecksCommand } from "./eval-check.js";
import { evalGateCommand } from "./eval-gate.js";
import { evalGenerateCommand } from "./eval-generate.js";
import { evalImportCommand } from "./eval-import.js";
import { evalListCommand } from "./eval-list.js";
import { evalRunCommand } from "./eval-run.js";
import { evalViewCommand } from "./eval-view.js";
import { evalWorkerCommand } from "./eval-worker.js";
import { withConfigExit } from "../eval/eval-action.js";

/** `octavo eval`: what ships, held against what is expected of it. */
export function evalCommand(): Command {
  const command = new Command("eval").description(
    "evaluate what ships: answers, serving, and whether to release",
  );
  for (const sub of [
    evalRunCommand(),
    evalCheckCommand(),
    evalChecksCommand(),
    evalGateCommand(),
    evalCalibrateCommand(),
    evalCertifyCommand(),
    evalListCommand(),
    evalViewCommand(),
    evalImportCommand(),
    evalGenerateCommand(),
    evalWorkerCommand(),
  ])
    command.addCommand(withConfigExit(sub));
  return command;
}
