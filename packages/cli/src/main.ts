#!/usr/bin/env node
import { OctavoError } from "@octavo/protocol/errors";
import { reportError } from "./output/report-error.js";
import { createProgram } from "./program.js";

// The reader of our output may go away, as `head` does: a server goes on serving. Output lost for other reasons is a failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") process.exitCode = 1;
  });
}

try {
  const program = await createProgram(process.argv.slice(2));
  await program.parseAsync();
} catch (thrown) {
  const error = OctavoError.from(thrown);
  reportError(error);
  // 130 is what shells give to a command that SIGINT ended.
  process.exitCode = error.code === "request_cancelled" ? 130 : 1;
}
