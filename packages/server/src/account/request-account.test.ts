import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { childContext } from "@octavo/tracing";
import { TenantResolver } from "../tenants/tenant-resolver.js";
import { defaultTenantSettings } from "../tenants/tenant-settings.js";
import { accountObserver, RequestAccount } from "./request-account.js";

const tenants = new TenantResolver(defaultTenantSettings);

describe("the account of an HTTP request", () => {
  it("settles when each of its engine requests has settled or was refused", () => {
    const account = new RequestAccount({}, tenants);
    let numCalls = 0;
    account.queued();
    account.queued();
    account.whenSettled(() => (numCalls += 1));
    account.refused();
    assert.equal(numCalls, 0);
    accountObserver.onSettled?.({ requestId: "a", owner: account, kernelMs: 3 });
    assert.equal(numCalls, 1);
    assert.equal(account.computeMs, 3);
    account.whenSettled(() => (numCalls += 1));
    assert.equal(numCalls, 2);
  });

  it("has no work if all its engine requests were refused", () => {
    const account = new RequestAccount({}, tenants);
    account.queued();
    account.refused();
    assert.equal(account.hasWork, false);
  });

  it("leaves engine requests of other owners alone", () => {
    const account = new RequestAccount({}, tenants);
    accountObserver.onSettled?.({ requestId: "a", owner: undefined, kernelMs: 3 });
    accountObserver.onSettled?.({ requestId: "a", owner: {}, kernelMs: 3 });
    assert.equal(account.computeMs, 0);
  });

  it("takes tenant and feature from headers, key and body", () => {
    const headers = { "x-tenant-id": "acme", "x-octavo-feature": "search" };
    const account = new RequestAccount(headers, tenants);
    account.describe({ model: "m", metadata: { feature: "other" } });
    assert.deepEqual([account.tenant, account.feature, account.model], ["acme", "search", "m"]);
    const byUser = new RequestAccount(
      {},
      new TenantResolver({ ...defaultTenantSettings, tenantFrom: "user" }),
    );
    assert.equal(byUser.tenant, undefined);
    byUser.user = "erin";
    assert.equal(byUser.tenant, "erin");
  });

  it("ignores the tenant header if keys decide the tenant", () => {
    const settings = { ...defaultTenantSettings, keys: [{ key: "k", tenant: "acme" }] };
    const forged = { "x-tenant-id": "forged" };
    const resolver = new TenantResolver(settings);
    assert.equal(new RequestAccount(forged, resolver).tenant, undefined);
    const key = { index: 0, tenant: "acme" };
    assert.equal(new RequestAccount(forged, resolver, { key }).tenant, "acme");
  });

  it("reads request fields for a span only if the trace is sampled", () => {
    const body = { model: "m", temperature: 0.5, user: "erin" };
    const plain = new RequestAccount({}, tenants);
    plain.describe(body);
    assert.deepEqual([plain.facts, plain.spanUserId], [{}, undefined]);
    const trace = { context: childContext(undefined, 1), parentSpanId: undefined };
    const traced = new RequestAccount({}, tenants, { trace });
    traced.describe(body);
    assert.equal(traced.facts.temperature, 0.5);
    assert.equal(traced.spanUserId, "erin");
  });
});
