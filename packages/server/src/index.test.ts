import assert from "node:assert/strict";
import { it } from "node:test";
import * as server from "./index.js";

it("exports these values and no others", () => {
  assert.deepEqual(Object.keys(server).toSorted(), [
    "MeteringLog",
    "createServer",
    "defaultServerConfig",
    "parseTenantSettings",
    "readTenantsFile",
    "resolveServerConfig",
    "serverOptions",
    "serverVersion",
    "tenantSources",
  ]);
});
