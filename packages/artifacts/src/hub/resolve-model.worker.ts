/** Another process for resolve-model.test.ts: resolves the id it is given and exits with 0 if the model opens. */
import { openCheckpoint } from "../checkpoint/open-checkpoint.js";
import { resolveModel } from "./resolve-model.js";

const model = await resolveModel(process.argv[2] ?? "");
await openCheckpoint(model.path);
