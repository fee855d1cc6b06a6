import { execFile } from "node:child_process";
import { OctavoError } from "@octavo/protocol";

/**
 * Files changed between HEAD and its merge base with a commit, as in a pull request.
 * @throws OctavoError `invalid_option` when git does not know the commit
 */
export function changedSince(reference: string): Promise<readonly string[]> {
  if (reference.startsWith("-"))
    throw new OctavoError("invalid_option", `--changed-since: ${reference} is not a commit`, {
      param: "changed-since",
    });
  return new Promise((resolve, reject) => {
    execFile(
      "git",
      ["diff", "--name-only", "-z", `${reference}...HEAD`],
      { maxBuffer: 64 * 2 ** 20 },
      (cause, out, problem) => {
        if (cause === null) resolve(out.split("\0").filter((path) => path !== ""));
        else
          reject(
            new OctavoError(
              "invalid_option",
              `--changed-since ${reference}: ${problem.trim().split("\n")[0] ?? cause.message}`,
              { param: "changed-since", cause },
            ),
          );
      },
    );
  });
}
