#!/usr/bin/env node
import { OctavoError } from "@octavo/protocol";
import { createProgram } from "./program.js";

try {
  await createProgram().parseAsync();
} catch (thrown) {
  const error = OctavoError.from(thrown);
  process.stderr.write(`octavo: ${error.message} [${error.code}]\n`);
  if (error.code === "internal_error" && error.cause instanceof Error)
    process.stderr.write(`${error.cause.stack}\n`);
  process.exitCode = 1;
}
