import { lstatSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname } from "node:path";
import { OctavoError, systemProblem } from "@octavo/protocol/errors";
import { checkFolder } from "./check-folder.js";

/** Throws `invalid_option` if the address cannot be listened on; called before the model is loaded. */
export async function checkAddress({
  host,
  port,
  uds,
}: {
  readonly host: string;
  readonly port: number;
  readonly uds?: string | undefined;
}): Promise<void> {
  if (uds !== undefined) {
    await checkSocketPath(uds);
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (cause: NodeJS.ErrnoException) => {
      reject(
        new OctavoError("invalid_option", `cannot listen on ${host}:${port}: ${systemProblem(cause)}`, {
          param: "port",
          cause,
        }),
      );
    });
    probe.listen(port, host, () => probe.close(() => resolve()));
  });
}

/** Removes the socket that a server which is gone left behind. */
async function checkSocketPath(path: string): Promise<void> {
  checkFolder("uds", dirname(path));
  const file = lstatSync(path, { throwIfNoEntry: false });
  if (file === undefined) return;
  if (!file.isSocket())
    throw new OctavoError("invalid_option", `--uds: ${path} is there and no socket`, { param: "uds" });
  const isServed = await new Promise<boolean>((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => resolve(true)).once("error", () => resolve(false));
    probe.once("connect", () => probe.destroy());
  });
  if (isServed)
    throw new OctavoError("invalid_option", `--uds: another server listens on ${path}`, { param: "uds" });
  rmSync(path);
}
