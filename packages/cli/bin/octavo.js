#!/usr/bin/env node
// Stands in git so that npm can link the command before anything is compiled.
await import("../dist/main.js");
