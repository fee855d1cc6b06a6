import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { byteGrammar } from "../testing/byte-grammar.js";

const cases: readonly (readonly [
  name: string,
  source: string,
  good: readonly string[],
  bad: readonly string[],
])[] = [
  ["GBNF's items", 'root ::= "a" [0-9]+ ("x" | "y")? .', ["a1x!", "a12é", "a1xx"], ["a", "ax!", "b1!"]],
  [
    "GBNF over several lines, with comments",
    '# numbers\nroot ::= num # the first\n  ("," num)*\n  | "none"\n\nnum ::= "-"? [1-9] [0-9]*\n',
    ["1", "-20,3", "none"],
    ["0", "1,", "nonenone"],
  ],
  [
    "GBNF's escapes",
    'root ::= "\\"\\\\\\n\\x41\\u00e9" [\\]\\-a-c^]',
    ['"\\\nAé]', '"\\\nAé-', '"\\\nAéb'],
    ['"\\\nAéd'],
  ],
  [
    "GBNF's repetitions, with blanks around them",
    'root ::= [a-z] {2, 3} ("1" | "2") * "-" ? x { 1 , 2 }\nx ::= "x" +',
    ["ab-xx", "abc12x"],
    ["a-x", "abcd-x"],
  ],
  ["GBNF's classes", "root ::= [^a-z]{2,3} [\\w]?", ["AB", "12_", "ÄÖÜ"], ["a", "ABC_D", "Ab_x"]],
  ["GBNF's recursion", 'root ::= "(" root ")" root | ""', ["", "()", "(())()"], ["(", ")("]],
  ["GBNF's direct left recursion", 'root ::= root "+" [0-9] | [0-9]', ["1", "1+2+3"], ["1+", "+1"]],
  [
    "JSON in GBNF",
    `root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\\"" ( [^"\\\\\\x7F\\x00-\\x1F] | "\\\\" (["\\\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ws
ws ::= | " " | "\\n" [ \\t]{0,20}`,
    ['{"a": [1, 2.5, "x\\n"]}', "[]", '{"a":{}}'],
    ["{a:1}", "[1,]"],
  ],
  [
    "Lark's rules",
    '?start: sum\nsum: product | sum "+" product -> add\nproduct: atom ("*" atom)*\natom: NUMBER | "(" sum ")"\nNUMBER: /[0-9]+/',
    ["1", "1+2*3", "(1+2)*3"],
    ["1+", "()"],
  ],
  [
    "Lark's ignored text",
    'start: "if" CNAME "then" CNAME\n%import common.CNAME\n%import common (WS, INT)\n%ignore WS\n%ignore /#[^\\n]*/',
    ["if a then b", " if  a\nthen b ", "if a # c\n then b"],
    ["if then", "if a the n b"],
  ],
  [
    "Lark's other items",
    'start: ["a"] "b"i~2 "x".."z"+ (C | D)? // end\nC: "c"\nD: /d.e/s | /F/i',
    ["abBx", "BBzzc", "bbyd\ne", "bbxf", "bbxF"],
    ["b", "abbb", "bbxg"],
  ],
  ["Lark's directives within rules", 'start: a+\na.2: "x" | "y"\n  | "z"', ["xyz"], ["", "w"]],
];

const refused: readonly (readonly [source: string, message: RegExp])[] = [
  ['rule ::= "a"', /no rule "root"/],
  ["root ::= other", /line 1: uses "other", which is not defined/],
  ['root ::= "a\nroot2 ::= "b"', /line 1: has a " without its end/],
  ['root ::= ("a"', /\( without its \)/],
  ["root ::= [a", /\[ without its \]/],
  ['root ::= "a"\nroot ::= "b"', /line 2: defines the rule "root" twice/],
  ['root ::= a\na ::= b\nb ::= a "x" | "y"', /left recursion/],
  ["root ::= root", /No text/],
  ["root ::= &", /unexpected "&"/],
  ['root ::= "a"{3,1}', /bounds reversed/],
  ['start: "a"\n%declare X', /%declare/],
  ["start: X\n%import python.NAME -> X", /%import/],
  ["start: X\n%import common.NOPE -> X", /common\.NOPE/],
  ["start: rep{a}", /template/],
  ["start: /a/x", /flags x/],
  ["begin: A", /no rule "start"/],
  ["this is no grammar", /expected a rule/],
  [`root ::= ${"(".repeat(5000)}`, /deep/],
  [`start: ${"(".repeat(5000)}`, /deep/],
];

describe("written grammars", () => {
  for (const [name, source, good, bad] of cases) {
    it(name, () => {
      const accepts = byteGrammar({ kind: "grammar", source });
      for (const text of good) assert.ok(accepts(text), `takes ${JSON.stringify(text)}`);
      for (const text of bad) assert.ok(!accepts(text), `does not take ${JSON.stringify(text)}`);
    });
  }
  for (const [source, message] of refused) {
    it(`are refused with the line: ${source.slice(0, 40)}`, () => {
      assert.throws(() => byteGrammar({ kind: "grammar", source }), { code: "invalid_request", message });
    });
  }
});
