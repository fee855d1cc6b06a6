import assert from "node:assert/strict";
import test from "node:test";
import { isGermanTaxId, isIban, isLuhn, isRoutingNumber } from "./checksums.js";
import { redact } from "./redact.js";

test("checksums agree with published examples", () => {
  assert.ok(isLuhn("4111111111111111") && isLuhn("378282246310005") && !isLuhn("4111111111111112"));
  assert.ok(isIban("DE89 3704 0044 0532 0130 00") && isIban("GB82WEST12345698765432"));
  assert.ok(!isIban("DE88370400440532013000") && !isIban("DE8937040044053201300"));
  assert.ok(isGermanTaxId("86095742719") && isGermanTaxId("47036892816") && !isGermanTaxId("86095742718"));
  assert.ok(!isGermanTaxId("12345678901") && !isGermanTaxId("06095742719"));
  assert.ok(isRoutingNumber("021000021") && !isRoutingNumber("021000022") && !isRoutingNumber("991000021"));
});

test("redacting leaves no secret and no personal data, and everything else as it was", () => {
  assert.equal(
    redact("Mail ada@example.com or +49 30 1234567, card 4111 1111 1111 1111; 🙂 bye"),
    "Mail [email] or [phone], card [credit_card]; 🙂 bye",
  );
  const key = `sk-ant-${"a1B2".repeat(8)}`;
  assert.equal(redact(`key ${key}.`), "key [anthropic_key].");
  assert.equal(redact("nothing here"), "nothing here");
  assert.equal(redact(""), "");
});
