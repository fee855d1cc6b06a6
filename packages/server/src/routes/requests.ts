import { OctavoError } from "@octavo/protocol";
import { neighboursInfo, servingRecordInfo } from "../generation/serving-records.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";

const neighboursSuffix = "/neighbours";

/** `rest` is an id, or an id and `/neighbours`. */
export function handleServingRecord(service: Service, context: RequestContext, rest: string): void {
  const { evidence } = service.model.engine;
  const wantsNeighbours = rest.endsWith(neighboursSuffix);
  const id = wantsNeighbours ? rest.slice(0, -neighboursSuffix.length) : rest;
  if (context.isOwn(id)) {
    const found = wantsNeighbours ? evidence.neighbours(id) : undefined;
    const request = wantsNeighbours ? undefined : evidence.request(id);
    if (found !== undefined) {
      sendJson(context.response, 200, neighboursInfo(service, found));
      return;
    }
    if (request !== undefined) {
      sendJson(context.response, 200, servingRecordInfo(service, request));
      return;
    }
  }
  const name = JSON.stringify(id.slice(0, 200));
  const message = `nothing is known of a request ${name}; send the x-octavo-request-id of a recent answer, and -0, -1, ... behind it where it had several prompts`;
  throw new OctavoError("not_found", message);
}
