import { readFileSync, statSync } from "node:fs";
import { OctavoError } from "@octavo/protocol";
import { parseTenantSettings, type TenantSettings } from "@octavo/server/settings";
import { InvalidArgumentError } from "commander";

const mostBytes = 4 * 1024 * 1024;

/** Reads the file that `--tenants` names. */
export function readTenantsFile(path: string): TenantSettings {
  try {
    const { size } = statSync(path);
    if (size > mostBytes)
      throw new InvalidArgumentError(`${path} has ${size} bytes, more than the ${mostBytes} that are read.`);
    return parseTenantSettings(readFileSync(path, "utf8"), path);
  } catch (thrown) {
    if (thrown instanceof InvalidArgumentError) throw thrown;
    throw new InvalidArgumentError(`${OctavoError.from(thrown).message}.`);
  }
}
