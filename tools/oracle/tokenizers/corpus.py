"""A small text in several scripts to train fixture tokenizers on; written for this purpose."""

ENGLISH = """
The library opens at nine and closes at six, except on Sundays, when it doesn't open at all.
I've asked whether you're coming; they'll answer when we're ready, and she'd rather wait until it's quiet.
Printing began with single sheets. A sheet folded once makes a folio, twice a quarto, three times an octavo.
Each page carries a number: 1, 2, 3, 10, 42, 100, 256, 1024, 2048, 4096, 65536 and 1000000.
The quick brown fox jumps over the lazy dog, and the dog does not mind. The weather was fine; the river was slow.
HTTP/1.1 200 OK, Content-Type: application/json, Cache-Control: no-store, X-Request-Id: 7f3a9c.
WARNING: the INPUT of this FUNCTION must not be EMPTY!!! (See section 4.2, page 17...)
"""

CODE = """
def add(left, right):
    \"\"\"Returns the sum.\"\"\"
    if left is None or right is None:
        raise ValueError("missing value")
    return left + right

for (let index = 0; index < items.length; index++) {
\tconst item = items[index];
\tif (item !== undefined && item.count > 0) {
\t\tconsole.log(`item ${index}: ${item.name}`);
\t}
}

{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius"}}
#include <vector>
int main() { std::vector<int> numbers{1, 2, 3}; return numbers.size() == 3 ? 0 : 1; }
"""

OTHER = """
Die Bibliothek öffnet um neun Uhr und schließt um sechs; am Sonntag bleibt sie geschlossen. Größe, Übung, äußerst.
La bibliothèque ouvre à neuf heures ; l'été, elle ferme plus tôt. Où êtes-vous allés ? Ça va très bien.
La biblioteca abre a las nueve. ¿Cuándo llegará el señor Muñoz? ¡Mañana por la mañana!
Библиотека открывается в девять часов и закрывается в шесть, кроме воскресенья.
Η βιβλιοθήκη ανοίγει στις εννέα και κλείνει στις έξι, εκτός από την Κυριακή.
图书馆九点开门，六点关门，星期天不开放。我们正在学习新的语言。
図書館は九時に開き、六時に閉まります。日曜日は休みです。カタカナとひらがな。
도서관은 아홉 시에 열고 여섯 시에 닫습니다. 일요일에는 쉽니다.
تفتح المكتبة في التاسعة وتغلق في السادسة ما عدا يوم الأحد.
הספרייה נפתחת בתשע ונסגרת בשש, חוץ מיום ראשון.
पुस्तकालय नौ बजे खुलता है और छह बजे बंद होता है। रविवार को छुट्टी रहती है।
ห้องสมุดเปิดเก้าโมงและปิดหกโมง ยกเว้นวันอาทิตย์
"""


def lines():
    """The corpus line by line, the English and the code several times, so that common words win merges."""
    for _ in range(4):
        yield from (line + "\n" for line in ENGLISH.strip("\n").split("\n"))
    for _ in range(2):
        yield from (line + "\n" for line in CODE.strip("\n").split("\n"))
    yield from (line + "\n" for line in OTHER.strip("\n").split("\n"))
