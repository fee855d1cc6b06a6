#!/usr/bin/env node
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { reportError } from "./output/report-error.js";
import { createProgram } from "./program.js";

// The reader of our output may go away, as `head` does: a server goes on serving. Output lost for other reasons is a failure.
for (const [name, stream] of [
  ["output", process.stdout],
  ["error", process.stderr],
] as const) {
  stream.on("error", (cause: NodeJS.ErrnoException) => {
    if (cause.code === "EPIPE" || process.exitCode === 1) return;
    process.exitCode = 1;
    const code = cause.code === "ENOSPC" ? "disk_full" : "internal_error";
    reportError(new OctavoError(code, `standard ${name} cannot be written: ${systemProblem(cause)}`));
  });
}

try {
  const program = await createProgram(process.argv.slice(2));
  await program.parseAsync();
} catch (thrown) {
  const error = OctavoError.from(thrown);
  reportError(error);
  // Shells report 130 for a command that SIGINT ended.
  process.exitCode = error.code === "request_cancelled" ? 130 : 1;
}
