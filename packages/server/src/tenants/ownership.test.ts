import assert from "node:assert/strict";
import { it } from "node:test";
import * as fc from "fast-check";
import { anyone, type CheckedKey } from "./ownership.js";
import { TenantResolver } from "./tenant-resolver.js";
import {
  defaultTenantSettings,
  type TenantKey,
  type TenantSettings,
  tenantSources,
} from "./tenant-settings.js";

const names = ["a", "b", "default", "a/tenant:a", "key:0", "tenant"];
const name = fc.constantFrom(...names);
const sources = fc.option(fc.constantFrom(...tenantSources), { nil: undefined });
const settings: fc.Arbitrary<TenantSettings> = fc.record({
  tenantFrom: sources,
  unknownTenants: fc.constantFrom("own" as const, "default" as const),
  lanes: fc.constant(defaultTenantSettings.lanes),
  defaultLane: fc.constant(defaultTenantSettings.defaultLane),
  laneDeadlines: fc.constant({}),
  tenants: fc.constantFrom({}, { a: {} }),
  keys: fc.array(
    fc.record({ key: fc.constant("k"), tenant: fc.option(name, { nil: undefined }), tenantFrom: sources }),
    { minLength: 1, maxLength: 6 },
  ),
});

const checked = (key: TenantKey, index: number): CheckedKey => ({
  index,
  tenant: key.tenant,
  tenantFrom: key.tenantFrom,
});

it("a key that may not speak for others never has the owner of another's requests, whatever it sends", () => {
  fc.assert(
    fc.property(settings, fc.array(fc.tuple(fc.nat(5), name, name), { maxLength: 40 }), (given, sent) => {
      const resolver = new TenantResolver(given);
      const keys = given.keys.map(checked);
      const firstOf = new Map<string, CheckedKey>();
      for (const [at, header, user] of sent) {
        const key = keys[at % keys.length]!;
        const speaks = key.tenant === undefined ? (key.tenantFrom ?? given.tenantFrom) : key.tenantFrom;
        if (speaks === "header" || speaks === "user") continue;
        const evidence = { headers: { "x-tenant-id": header }, key, user };
        const owner = resolver.ownerOf(evidence);
        assert.notEqual(owner, anyone);
        assert.equal(resolver.accountOf(evidence).cacheScope, owner);
        const first = firstOf.get(owner) ?? key;
        firstOf.set(owner, first);
        const isSame = first.tenant === undefined ? first.index === key.index : first.tenant === key.tenant;
        assert(isSame, `${owner} is of ${JSON.stringify([first, key])}`);
      }
    }),
    { numRuns: 1000 },
  );
});

it("a tenant is one owner under all keys that carry or speak for it, even if accounted to the default", () => {
  const given: TenantSettings = { ...defaultTenantSettings, unknownTenants: "default" };
  const resolver = new TenantResolver({ ...given, keys: [{ key: "k", tenant: "a" }] });
  const ownerOf = (key: Partial<CheckedKey>, header?: string): string =>
    resolver.ownerOf({
      headers: header === undefined ? {} : { "x-tenant-id": header },
      key: { index: 0, ...key },
    });
  const owners = [
    ownerOf({ tenant: "a" }),
    ownerOf({ index: 1, tenant: "a", lane: "batch" }, "b"),
    ownerOf({ index: 2, tenantFrom: "header" }, "a"),
    ownerOf({ index: 3, tenant: "c", tenantFrom: "header" }, "a"),
  ];
  assert.deepEqual(new Set(owners), new Set(["tenant a"]));
  assert.equal(resolver.accountOf({ headers: {}, key: { index: 0, tenant: "a" } }).tenant, "default");
  assert.notEqual(ownerOf({ tenant: "b" }), ownerOf({ tenant: "a" }));
  const keyless = new TenantResolver(defaultTenantSettings);
  assert.equal(keyless.ownerOf({ headers: {}, key: undefined }), anyone);
  assert.equal(keyless.accountOf({ headers: {}, key: undefined }).cacheScope, undefined);
});
