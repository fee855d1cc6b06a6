import { OctavoError } from "@octavo/protocol/errors";
import type { Dispatcher } from "undici";

/** The hub's own error codes (X-Error-Code) say more than the status: a hidden repository answers 401 as a missing one does. */
export async function hubStatusError(
  status: number,
  headers: Dispatcher.ResponseData["headers"],
  body: Dispatcher.ResponseData["body"],
  what: string,
  hasToken: boolean,
): Promise<OctavoError> {
  await body.dump();
  const errorCode = String(headers["x-error-code"] ?? "");
  const said = String(headers["x-error-message"] ?? "").slice(0, 300);
  const suffix = said === "" ? "" : ` (the hub says: ${said})`;
  const login = hasToken
    ? "the token in HF_TOKEN has no access to it"
    : "set HF_TOKEN to a token with access to it (https://huggingface.co/settings/tokens)";
  if (errorCode === "GatedRepo") {
    return new OctavoError(
      "hub_denied",
      `${what} is gated: accept its terms on the hub, then ${login}${suffix}`,
    );
  }
  if (errorCode === "RevisionNotFound") {
    return new OctavoError("artifact_not_found", `${what}: the repository has no such revision${suffix}`);
  }
  if (errorCode === "EntryNotFound") {
    return new OctavoError("artifact_not_found", `${what}: the repository has no such file${suffix}`);
  }
  if (errorCode === "RepoNotFound" || status === 404) {
    return new OctavoError(
      "artifact_not_found",
      `${what} does not exist on the hub, or is private: check the name; if it is private, ${login}${suffix}`,
    );
  }
  if (status === 401 || status === 403) {
    return new OctavoError("hub_denied", `${what}: the hub refuses access (${status}); ${login}${suffix}`);
  }
  if (status >= 500 || status === 408 || status === 429) {
    const seconds = Number(headers["retry-after"]);
    const retryAfterSeconds = Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
    return new OctavoError("hub_unreachable", `${what}: the hub answers ${status}${suffix}`, {
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    });
  }
  return new OctavoError("artifact_not_found", `${what}: the hub answers ${status}${suffix}`);
}
