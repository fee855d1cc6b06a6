import { wireSchema } from "@octavo/protocol";
import type { RouteFacts } from "../http/router.js";
import { serverVersion } from "../version.js";

type Json = Readonly<Record<string, unknown>>;

/** An OpenAPI 3.1 document of all routes; request fields come from the schemas that validate them. */
export function openApiDocument(routes: readonly RouteFacts[], rootPath = ""): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replace("/*", "/{rest}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Octavo", version: serverVersion, license: { name: "Apache-2.0" } },
    ...(rootPath === "" ? {} : { servers: [{ url: rootPath }] }),
    paths,
    components: {
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
      schemas: { Error: errorSchema },
    },
  };
}

function operation({ method, path, access, answer, summary, request }: RouteFacts): Json {
  const json = (schema: Json): Json => ({ "application/json": { schema } });
  const failure = { description: "An error.", content: json({ $ref: "#/components/schemas/Error" }) };
  return {
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^a-z0-9]+/gi, "_")}`,
    summary,
    ...(access !== "public" ? { security: [{ key: [] }] } : {}),
    ...(path.endsWith("/*")
      ? { parameters: [{ name: "rest", in: "path", required: true, schema: { type: "string" } }] }
      : {}),
    ...(request === undefined ? {} : { requestBody: { required: true, content: json(wireSchema(request)) } }),
    responses: {
      200: {
        description: summary,
        content: {
          ...(answer.startsWith("json") ? json({}) : {}),
          ...(answer === "text" ? { "text/plain": text } : {}),
          ...(answer === "json or events" ? { "text/event-stream": text } : {}),
        },
      },
      "4XX": failure,
      "5XX": failure,
    },
  };
}

const text: Json = { schema: { type: "string" } };

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
