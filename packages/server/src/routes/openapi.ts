import { wireSchema } from "@octavo/protocol";
import type { Route } from "../http/router.js";
import { serverVersion } from "../version.js";

type Json = Readonly<Record<string, unknown>>;

/** Every route as an OpenAPI 3.1 document; requests' fields come from the schemas that check them. */
export function openApiDocument(routes: readonly Route[]): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replace("/*", "/{rest}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Octavo", version: serverVersion, license: { name: "Apache-2.0" } },
    paths,
    components: {
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
      schemas: { Error: errorSchema },
    },
  };
}

function operation({ method, path, access, summary, request }: Route): Json {
  const json = (schema: Json): Json => ({ "application/json": { schema } });
  const failure = { description: "An error.", content: json({ $ref: "#/components/schemas/Error" }) };
  const canStream = request !== undefined && "stream" in request.shape;
  return {
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^a-z0-9]+/gi, "_")}`,
    summary,
    ...(access === "key" ? { security: [{ key: [] }] } : {}),
    ...(path.endsWith("/*")
      ? { parameters: [{ name: "rest", in: "path", required: true, schema: { type: "string" } }] }
      : {}),
    ...(request === undefined ? {} : { requestBody: { required: true, content: json(wireSchema(request)) } }),
    responses: {
      200: {
        description: summary,
        content: {
          ...(path === "/metrics" ? { "text/plain": { schema: { type: "string" } } } : json({})),
          ...(canStream ? { "text/event-stream": { schema: { type: "string" } } } : {}),
        },
      },
      "4XX": failure,
      "5XX": failure,
    },
  };
}

const errorSchema: Json = {
  type: "object",
  required: ["error"],
  properties: {
    error: {
      type: "object",
      required: ["message", "type"],
      properties: {
        message: { type: "string" },
        type: { type: "string" },
        param: { type: ["string", "null"] },
        code: { type: "integer" },
      },
    },
  },
};
