"""Clauses that pass for words: told by a fixed rule, in the scripts that put no spaces between."""

from __future__ import annotations

import pyarrow as pa
import pytest

from quietcorpus.indexes.tokens.letters import are_clauses
from quietcorpus.indexes.tokens.tokenizer import tokenize
from quietcorpus.indexes.tokens.vocabulary import document_frequencies

CLAUSES = {
    "Chinese": "酒店的服务态度非常好。房间很大。早餐也很丰富。我们下次还会再来这里住。",
    "Japanese": "このホテルのサービスはとても良かったです。朝食も美味しくて、また来たいです。",
    "Thai": "พนักงานของโรงแรมนี้บริการดีมาก อาหารเช้าอร่อยและห้องพักสะอาดครับ",
    "Lao": "ພະນັກງານຂອງໂຮງແຮມນີ້ບໍລິການດີຫຼາຍ ອາຫານເຊົ້າແຊບຫຼາຍ",
    "Khmer": "បុគ្គលិកសណ្ឋាគារនេះបម្រើបានល្អណាស់ អាហារពេលព្រឹកឆ្ងាញ់ណាស់",
    "Burmese": "ဒီဟိုတယ်ရဲ့ဝန်ဆောင်မှုကအရမ်းကောင်းပါတယ် မနက်စာလည်းအရသာရှိတယ်",
    "Yi": "ꆈꌠꁱꂷꆈꌠꁱꂷ",
    "Vai": "ꕙꔤꕙꔤꕙꔤꕙꔤꕙꔤꕙꔤ",
    "Buginese": "ᨅᨔᨕᨘᨁᨗᨅᨔᨕᨘᨁᨗᨅᨔᨕᨘᨁᨗ",
    "Ahom": "\U00011700\U00011701\U00011702" * 5,
    "Bopomofo": "ㄨㄛˇㄇㄣㄐㄧㄣㄊㄧㄢㄑㄩˋ",
}
WORDS = {
    "Chinese": "酒店 的 服务 态度 非常 好 房间 很 大 早餐 也 很 丰富 我们 下次 还 会 再 来 这里 住",
    "Japanese": "この ホテル の サービス は とても 良かっ た です 朝食 も インターネット",
    "Thai": "พนักงาน ของ โรงแรม นี้ บริการ ดี มาก อาหารเช้า อร่อย และ ห้องพัก สะอาด ครับ",
    "Korean": "이 호텔의 서비스는 정말 좋았습니다 아침 식사도 맛있었고 다음에 또 오고 싶습니다",
    "Tibetan": "བོད་སྐད་ནི་བོད་མིའི་སྐད་ཡིག་ཡིན།",
    "Amharic": "የዚህ ሆቴል አገልግሎት በጣም ጥሩ ነበር",
    "English": "counterrevolutionaries and internationalisation in extraordinarily long sentences",
    "German": "Donaudampfschifffahrtsgesellschaftskapitän und Bundesverfassungsgericht",
    "Finnish": "epäjärjestelmällistyttämättömyydellänsäkäänköhän",
    "Hindi": "इस होटल की सेवा बहुत अच्छी थी और नाश्ता भी स्वादिष्ट था",
    "Arabic": "كانت خدمة هذا الفندق ممتازة والإفطار لذيذ وسنعود مرة أخرى",
    "Russian": "Обслуживание в этой гостинице было превосходным, достопримечательности рядом",
    "Greek": "εξυπηρέτηση σε αυτό το ξενοδοχείο ήταν εξαιρετική και το πρωινό πλούσιο",
    "Vietnamese": "Dịch vụ của khách sạn này rất tốt và bữa sáng cũng rất ngon",
    "Korean with Han": "國際聯合에서 大韓民國의 獨立을 承認하였다",
    "Chinese with others": "他 的 β受体 和 naïve T细胞 在 Москва 我ㄨㄛˇ們ㄇㄣ 卡拉OK",
    "Turkish": "Muvaffakiyetsizleştiricileştiriveremeyebileceklerimizdenmişsiniz",
}


def terms_of(text: str) -> list[str]:
    terms, _ = document_frequencies(tokenize(pa.array([text], pa.large_string())))
    found: list[str] = terms.to_pylist()
    return found


@pytest.mark.parametrize("language", CLAUSES)
def test_clauses_are_told(language: str) -> None:
    # Kills: a script that is forgotten.
    assert are_clauses(terms_of(CLAUSES[language]))


@pytest.mark.parametrize("language", WORDS)
def test_words_are_words(language: str) -> None:
    # Kills: a rule on the length of words alone, which long ones of other scripts would break.
    assert not are_clauses(terms_of(WORDS[language]))


# A letter of each script, or of each of its blocks, and the longest run of it that is a word.
LETTERS = {
    "Hiragana": ("\u3042", 4),
    "Han": ("\u4e00", 4),
    "Han, extension A": ("\u3400", 4),
    "Han, compatibility": ("\ufa0e", 4),
    "Han, extension B": ("\U00020000", 4),
    "Han, extension G": ("\U00030000", 4),
    "Katakana": ("\u30a2", 12),
    "Katakana, extensions": ("\u31f0", 12),
    "Thai": ("\u0e01", 10),
    "Lao": ("\u0e81", 10),
    "Myanmar": ("\u1000", 10),
    "Myanmar, extension A": ("\uaa60", 10),
    "Myanmar, extension B": ("\ua9e0", 10),
    "Khmer": ("\u1780", 10),
    "Tai Le": ("\u1950", 10),
    "New Tai Lue": ("\u1980", 10),
    "Tai Tham": ("\u1a20", 10),
    "Balinese": ("\u1b05", 10),
    "Javanese": ("\ua984", 10),
    "Tai Viet": ("\uaa80", 10),
}


@pytest.mark.parametrize("script", LETTERS)
def test_every_script_without_spaces(script: str) -> None:
    # Kills: a block that is forgotten, in which clauses would pass for words.
    letter, longest = LETTERS[script]
    assert terms_of(letter * longest) == [letter * longest]
    assert not are_clauses(terms_of(letter * longest))
    assert are_clauses(terms_of(letter * (longest + 1)))


@pytest.mark.parametrize(
    ("word", "longer"),
    [
        ("服务态度", "服务态度好"),
        ("ありがと", "ありがとう"),
        ("アメリカ", "アメリカ人"),
        ("アイスクリームコーヒーセ", "アイスクリームコーヒーセッ"),
        ("พ" * 10, "พ" * 11),
        ("iphone服务态度", "iphone服务态度好"),
        ("三有aids病", "张三有aids病"),
        ("卡拉ok", "去唱卡拉ok吧"),
        ("a" * 20 + "พ" * 10, "พ" * 5 + "aids" + "พ" * 5),
    ],
)
def test_the_longest_words(word: str, longer: str) -> None:
    # Kills: a length that is off by one, and one of the whole term in place of the run in it.
    assert not are_clauses([word])
    assert are_clauses([longer])


@pytest.mark.parametrize("other", ["é", "βγ", "да", "한국", "ㄨㄛ", "พ", "अ", "naïveté"])
def test_letters_of_other_scripts_hide_nothing(other: str) -> None:
    # Kills: a list of the letters that may stand within a clause, and one that counts each.
    assert are_clauses([other.join("服务态")])
    assert not are_clauses([other.join("服务"), other.join("服务") + other])


@pytest.mark.parametrize("mark", ["\ufe00", "\U000e0100", "\u0301", "\u0301\u0301", "'", "\u2019"])
def test_marks_do_not_count(mark: str) -> None:
    # Kills: marks that end a run, and marks that count as characters.
    assert are_clauses([mark.join("服务态度好")])
    assert are_clauses([mark.join("พ" * 11)])
    assert not are_clauses([mark.join("服务态度")])
    assert not are_clauses(["服务。态度。好"])


def test_one_in_twenty_is_tolerated_of_those_without_spaces() -> None:
    # Kills: a share of all terms, by which clauses would hide among words of another language.
    words = [chr(0x4E00 + i) for i in range(19)]
    others = [f"a{chr(97 + i)}" for i in range(26)] * 100
    assert not are_clauses(["服务态度好", *words])
    assert are_clauses(["服务态度好", *words[1:], *others])
    assert not are_clauses(others)
    assert not are_clauses([])
