import { homedir } from "node:os";
import { join } from "node:path";

/** Where traces are kept unless another folder is named: the user's data folder by the XDG base directory rules. */
export function defaultStoreFolder(): string {
  const data = process.env["XDG_DATA_HOME"];
  return join(
    data !== undefined && data !== "" ? data : join(homedir(), ".local", "share"),
    "octavo",
    "traces",
  );
}
