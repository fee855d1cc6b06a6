import assert from "node:assert/strict";
import test from "node:test";
import { escapeHtml } from "./escape.js";

/** All code points that `pattern` matches. */
function charactersOf(pattern: RegExp): string[] {
  return Array.from({ length: 0x110000 }, (_, code) => code)
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code))
    .filter((character) => pattern.test(character));
}

test("no bidirectional control, format character or other invisible character passes through", () => {
  const invisible = charactersOf(/[\p{Cf}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}]/u);
  assert.ok(invisible.length > 4000 && invisible.includes("\u202e") && invisible.includes("\u{e0041}"));
  for (const character of invisible) {
    const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    assert.equal(escapeHtml(`;${character};`), `;\u27e8U+${code}\u27e9;`);
  }
});

test("no control character passes through but tab, line feed and carriage return", () => {
  for (const character of charactersOf(/\p{Cc}/u)) {
    assert.equal(escapeHtml(character), "\t\n\r".includes(character) ? character : "\u2426");
  }
});

test("lone surrogates and markup are replaced", () => {
  assert.equal(
    escapeHtml("\ud800<a href=\"x\" title='y'>&"),
    "\ufffd&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;",
  );
});

test("joiners within words and emoji stay, hidden ones do not", () => {
  const family = "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}";
  const heart = "\u2764\ufe0f";
  const persian = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645";
  assert.equal(escapeHtml(`${family} ${heart} ${persian}`), `${family} ${heart} ${persian}`);
  assert.equal(escapeHtml("pass \u200d\u200c word"), "pass \u27e8U+200D\u27e9\u27e8U+200C\u27e9 word");
});
