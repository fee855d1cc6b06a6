#!/usr/bin/env node
import { OctavoError } from "@octavo/protocol";
import { createProgram } from "./program.js";

// Whoever reads our output may go away, as `head` does, and a server serves on; output that is lost otherwise is a failure.
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
  process.stderr.write(`octavo: ${error.message} [${error.code}]\n`);
  if (error.code === "internal_error" && error.cause instanceof Error)
    process.stderr.write(`${error.cause.stack}\n`);
  // 130 is what shells give to a command that SIGINT ended.
  process.exitCode = error.code === "request_cancelled" ? 130 : 1;
}
