import type { z } from "zod";
import type { RequestContext } from "../http/request-context.js";
import type { RouteFacts } from "../http/router.js";
import type { Service } from "../service.js";

type Answer = Promise<void> | void;

/** One row of the table of endpoints. */
export interface Endpoint extends RouteFacts {
  /** Other paths that answer in the same way. */
  readonly aliases?: readonly string[];
  /** The setting that enables the endpoint. */
  readonly onlyWith?: "enableFaultInjection" | "replicaKey";
  /** Whether the model computes for it; default: where it has a span. */
  readonly runsModel?: boolean;
  /** `rest`: the part of the path matched by the star. */
  readonly serve: (service: Service, context: RequestContext, rest: string) => Answer;
}

type Row = Omit<Endpoint, "path" | "request" | "ids" | "serve">;

/** A path with a star needs `endpointWithId`, whose row declares what its ids find. */
type WithoutStar<Path extends string> = Path extends `${string}/*` ? never : Path;

/** An endpoint that takes neither a body nor an id. */
export function endpoint<Path extends string>(
  row: Row & {
    readonly path: Path & WithoutStar<Path>;
    readonly handle: (service: Service, context: RequestContext) => Answer;
  },
): Endpoint {
  const { handle, ...facts } = row;
  return { ...facts, request: undefined, ids: undefined, serve: handle };
}

/** An endpoint whose body is checked by a schema before it is handled. */
export function endpointWithBody<Path extends string, Schema extends z.ZodObject>(
  row: Row & {
    readonly path: Path & WithoutStar<Path>;
    readonly request: Schema;
    /** Runs before the body is read; throws if the server's settings disable the endpoint. */
    readonly precondition?: (service: Service) => void;
    readonly handle: (service: Service, context: RequestContext, request: z.output<Schema>) => Answer;
  },
): Endpoint {
  const { handle, precondition, ...facts } = row;
  return {
    ...facts,
    ids: undefined,
    serve: async (service, context) => {
      precondition?.(service);
      const request = await service.readRequest(context, row.request);
      if (row.span === "chat" || row.span === "text_completion") service.checkGivesText();
      await handle(service, context, request);
    },
  };
}

/** An endpoint whose path ends with an id. */
export function endpointWithId(
  row: Row & {
    readonly path: `${string}/*`;
    readonly ids: NonNullable<Endpoint["ids"]>;
    readonly handle: (service: Service, context: RequestContext, id: string) => Answer;
  },
): Endpoint {
  const { handle, ...facts } = row;
  return { ...facts, request: undefined, serve: handle };
}
