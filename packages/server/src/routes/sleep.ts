import type { SleepOptions, WakeTag } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { requestQuery } from "../http/router.js";
import type { Service } from "../service.js";
import { type Endpoint, endpoint } from "./endpoint.js";

/** vLLM's endpoints of its sleep mode, with their names and parameters. */
export const sleepEndpoints: readonly Endpoint[] = [
  endpoint({
    method: "POST",
    path: "/sleep",
    access: "admin",
    span: "none",
    answer: "nothing",
    summary:
      "`?level=1&mode=abort`: frees weights and KV cache; requests that come meanwhile wait. Only with `--enable-sleep-mode`.",
    handle: handleSleep,
  }),
  endpoint({
    method: "POST",
    path: "/wake_up",
    access: "admin",
    span: "none",
    answer: "nothing",
    summary: "`?tags=weights&tags=kv_cache`: takes back what the tags name, by default both.",
    handle: handleWakeUp,
  }),
  endpoint({
    method: "GET",
    path: "/is_sleeping",
    access: "admin",
    span: "none",
    answer: "json",
    summary: '`{"is_sleeping": false}`: whether anything is missing.',
    handle: ({ model }, { response }) =>
      sendJson(response, 200, { is_sleeping: model.sleepMode?.level !== undefined }),
  }),
];

async function handleSleep(service: Service, { request, response, log }: RequestContext): Promise<void> {
  const query = requestQuery(request.url ?? "/");
  const level = query.get("level") ?? "1";
  const mode = query.get("mode") ?? "abort";
  // What is wrong in them is said by the model.
  const options = { level: /^\d$/.test(level) ? Number(level) : level, mode } as SleepOptions;
  const sleepMode = sleepModeOf(service);
  await sleepMode.sleep(options);
  log.info({ level: sleepMode.level, mode }, "the model sleeps");
  response.writeHead(200, { "content-length": 0 }).end();
}

async function handleWakeUp(service: Service, { request, response, log }: RequestContext): Promise<void> {
  const tags = requestQuery(request.url ?? "/").getAll("tags") as WakeTag[];
  const sleepMode = sleepModeOf(service);
  await sleepMode.wakeUp(tags.length === 0 ? undefined : tags);
  log.info(
    { level: sleepMode.level },
    sleepMode.level === undefined ? "the model is awake" : "the model wakes",
  );
  response.writeHead(200, { "content-length": 0 }).end();
}

function sleepModeOf({ model }: Service): NonNullable<Service["model"]["sleepMode"]> {
  if (model.sleepMode !== undefined) return model.sleepMode;
  throw new OctavoError(
    "not_found",
    "this is off here; the server's operator can allow it with --enable-sleep-mode",
  );
}
