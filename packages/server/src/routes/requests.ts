import { OctavoError } from "@octavo/protocol";
import { servingRecordInfo } from "../generation/serving-records.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";

/** GET /v1/requests/ID */
export function handleServingRecord(service: Service, context: RequestContext, id: string): void {
  const evidence = context.isOwn(id) ? service.model.engine.evidence.request(id) : undefined;
  if (evidence === undefined) {
    const name = JSON.stringify(id.slice(0, 200));
    const message = `nothing is known of a request ${name}; send the x-octavo-request-id of a recent answer, and -0, -1, ... behind it where it had several prompts`;
    throw new OctavoError("not_found", message);
  }
  sendJson(context.response, 200, servingRecordInfo(service, evidence));
}
