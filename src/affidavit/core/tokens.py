"""Words of a text as a search finds them: whole words, parts of identifiers, pairs of characters.

    getUserName, user_id        getusername get user name getuser username, userid user id
    数据库                       数 据 库 数据 据库         no spaces: every character, every pair
    والكتاب                      والكتاب كتاب                  with and without its article

Case, accents and vowel signs do not matter. Every token is letters and digits alone, so that no
other tokenizer takes it apart. What is asked for is cut the same way, and all of it must be found.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

# Of a longer text only the beginning can be found.
CHARACTERS_MAX: Final = 1_000_000

_WORD: Final = re.compile(r"\w+\*?")
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_A-Za-z0-9]+")
# Scripts written without spaces between words: Thai to Khmer, kana, Han, Hangul.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_ARABIC: Final = re.compile("[\u0600-\u06ff]")
_ARABIC_LETTERS: Final = str.maketrans("أإآٱةىؤئ", "ااااهيوي", "ـ")
_ARABIC_HEAD: Final = re.compile("(?:[وفبكل]?ال|لل)(?=...)")


def index_tokens(text: str) -> list[str]:
    """Every token a text is found by."""
    found: list[str] = []
    for match in _WORD.finditer(_composed(text[:CHARACTERS_MAX])):
        word = match.group().rstrip("*")
        parts = _parts(word)
        found += parts if len(parts) == 1 else [_fold(word), *parts]
        if len(parts) > 2 and word.isascii():
            found += map("".join, pairwise(parts))
    return [token for token in found if token]


def query_tokens(text: str) -> list[str]:
    """What must all be found; a word that ends in * stands for every word that begins so."""
    found: list[str] = []
    for match in _WORD.finditer(_composed(text)):
        word, star = match.group().rstrip("*"), match.group().endswith("*")
        parts = [part for part in _parts(word, asked=True) if part]
        if star and parts:
            parts[-1] += "*"
        found += parts
    return list(dict.fromkeys(found))


def _composed(text: str) -> str:
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text)
    bare = "".join(char for char in plain if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", bare)


def _parts(word: str, *, asked: bool = False) -> list[str]:
    parts: list[str] = []
    for part in _PART.findall(word) or [word]:
        if part.isascii():
            parts.append(part.lower())
        else:
            parts += _foreign(part, asked=asked)
    return parts


def _foreign(part: str, *, asked: bool) -> list[str]:
    """Tokens of a part in another script than Latin without accents."""
    found: list[str] = []
    for run in re.split(f"({_UNSPACED.pattern})", part):
        if _UNSPACED.fullmatch(run):
            pairs = [run[at : at + 2] for at in range(len(run) - 1)]
            found += (pairs or [run]) if asked else [*run, *pairs]
        elif run:
            found += _arabic(run, asked=asked) if _ARABIC.search(run) else [_fold(run)]
    return found


def _arabic(word: str, *, asked: bool) -> list[str]:
    plain = word.translate(_ARABIC_LETTERS)
    bare = _ARABIC_HEAD.sub("", plain, count=1) if _ARABIC_HEAD.match(plain) else plain
    return [bare] if asked or bare == plain else [plain, bare]


def _fold(word: str) -> str:
    return "".join(filter(str.isalnum, word.casefold()))
