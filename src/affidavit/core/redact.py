"""Taking secrets out of what is about to be stored: known shapes, and values of telling names.

    redact_json({"env": {"A": "b"}})       -> ({"env": {"A": "[redacted:env]"}}, 1)

What goes is decided by shape alone: prefixes that a provider gives its tokens, private keys,
passwords in URLs and headers, and values behind names such as `api_key`. A random text with neither
a shape nor a name is kept, because digests, ids and images look the same. `RULES` names the rules:
it changes with them, and every entry from which something was taken says under which rules.

Nearly every text holds nothing, so a first look (`_LONG`, `_WORDS`) says which others are
needed.
Every repetition is bounded or possessive: a hostile text takes time in proportion to its size.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

RULES: Final = "2"

# Provider tokens: the prefix is the fact, lengths are the least that was ever issued.
_SHAPES: Final = {
    "aws": r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])",
    "github": r"(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{36,})",
    "gitlab": r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas|ffct|rtr)-[\w.-]{20,}"
    r"|GR1348941[\w-]{20,}",
    "slack": r"xox[abeoprs][-.][A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,}",
    "sk": r"sk-(?:(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}|[a-z0-9]{32,})"
    r"|[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}",
    "google": r"AIza[\w-]{35,}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}",
    "jwt": r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
    "registry": r"npm_[A-Za-z0-9]{36,}|pypi-AgE[\w-]{50,}|rubygems_[a-f0-9]{48}|oy2[a-z0-9]{43}"
    r"|CLOJARS_[a-z0-9]{60}|dckr_(?:pat|oat)_[\w-]{27,}",
    "model": r"(?:hf|api_org)_[A-Za-z0-9]{34,}|(?:gsk|pplx|xai|r8|nvapi)[-_](?=[\w-]*\d)[\w-]{30,}",
    "mail": r"SG\.[\w-]{16,}\.[\w-]{16,}|xkeysib-[a-f0-9]{64}-\w{16}|key-[a-f0-9]{32}"
    r"|[a-f0-9]{32}-us\d{1,2}(?!\w)",
    "cloud": r"do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|LTAI[A-Za-z0-9]{20}|pul-[a-f0-9]{40}"
    r"|v1\.0-[a-f0-9]{24}-[a-f0-9]{146}|[\w~.]{3}\dQ~[\w~.-]{31,}|AGE-SECRET-KEY-1[A-Z0-9]{58}"
    r"|f(?:o1|m1[ar]|m2)_[\w+/-]{40,}=*|sq0(?:atp|csp)-[\w-]{22,}|EAAA(?=[\w-]*\d)[\w-]{56,64}(?![\w+/=-])|EAA[MC][A-Za-z0-9]{100,}",
    "vault": r"hv[sbr]\.[\w-]{24,}|ops_eyJ[\w+/-]{100,}"
    r"|A3-[A-Z0-9]{6}-[A-Z0-9-]{22,}|\w{14}\.atlasv1\.[\w=-]{60,}",
    "service": r"(?:shp(?:at|ca|pa|ss)|lin_(?:api|oauth)|ntn|figd|tfp|sntry[su]|rdme|pnu|glsa|whsec"
    r"|shippo_(?:live|test)|duffel_(?:live|test)|pscale_(?:tkn|oauth|pw)|sgp|sm_[aps]at|dnkey|nfp"
    r"|dp\.(?:pt|st|ct|sa)|dt0c01)[-_.](?=[\w.=+/-]*\d)[\w.=+/-]{16,}"
    r"|(?:secret|re|sbp|glc|phc|phx|vercel)_(?=[A-Za-z]*\d)[A-Za-z0-9+/=]{30,}",
    "product": r"ATATT3[\w=-]{60,}|ATCTT3[\w=-]{60,}|NR(?:AK|II|JS|AL)-[\w-]{19,}|PMAK-[\w-]{40,}"
    r"|EZ[AT]K[A-Za-z0-9]{54}|FLWSECK_TEST-\w{12,}|AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59}"
    r"|API-[A-Z0-9]{26}(?!\w)|fio-u-[\w=-]{60,}|p8e-\w{32}|tk-us-[\w-]{48}|4b1d[A-Za-z0-9]{38}(?!\w)"
    r"|AQVN[\w-]{35,}|[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk|sha256~[\w-]{43}"
    r"|SK[0-9a-f]{32}(?!\w)|\d{8,10}:AA[\w-]{33}|[MNO](?=[\w-]*\d)[\w-]{23,25}\.[\w-]{6}\.[\w-]{27,}",
}
_STARTS: Final = r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt])|(?<=%3[AD]))"
_TOKENS: Final = re.compile(
    _STARTS + "(?:" + "|".join(f"(?P<{name}>{shape})" for name, shape in _SHAPES.items()) + ")",
    re.ASCII,
)

_KEY: Final = re.compile(
    r"(-----BEGIN[A-Z0-9 ]{0,40} PRIVATE KEY(?: BLOCK)?-----)"
    r"([^-]*+(?:-(?!----)[^-]*+)*+)(-----END[A-Z0-9 ]{0,60}-----)?"
)
_KEY_BODY: Final = re.compile(r"[A-Za-z0-9+/]{40}")


class _Clue(NamedTuple):
    """What tells of a secret: `find` is looked for in lower case, `value` is its part that goes.

    Nearly all that is no secret must be told by the pattern: `is_value` costs a hundred times more.
    """

    name: str
    marks: tuple[str, ...]
    find: re.Pattern[str]
    is_value: Callable[[re.Match[str], str], bool]


# A name may go on before it, as in DB_PASSWORD, and must end with one of these.
# Each begins with a letter, so that a search is quick.
_NAMES: Final = (
    r"password|passwd|passphrase|passcode|passwort|kennwort|contrase(?:n|\u00f1)a|pwd|secret|token"
    r"|credentials?|pass(?<![a-z]pass)|"
) + "|".join(
    rf"{kind}[_-]?(?:key|string)"
    for kind in (
        *("api", "access", "auth", "private", "secret", "encryption", "signing", "account"),
        *("master", "service", "app", "license", "shared", "connection"),
    )
)
_ENDINGS: Final = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "pwd", "secret"),
    *("token", "credential", "credentials", "authorization", "cookie", "_pass"),
    *(
        f"{kind}{join}key"
        for kind in ("api", "access", "auth", "private", "secret", "encryption", "signing")
        for join in ("", "_")
    ),
    *("account_key", "master_key", "service_key", "shared_key", "connection_string"),
)
# How no value begins, and words that are none: what stands there in their place is not secret.
_NO_START: Final = r"(?![$<{%*#]|\[redacted|(?:your|my|the|a)[-_ ]|(?:u?int|float)\d)"
_NO_VALUES: Final = frozenset(
    (
        *("none", "null", "nil", "true", "false", "undefined", "string", "str", "required"),
        *("optional", "redacted", "hidden", "masked", "example", "placeholder", "unknown", "empty"),
        *("changeme", "change-me", "change_me", "uint8array"),
    )
)
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*+(?:(?:\.|::|->)[A-Za-z_$][\w$]*+)*+\Z")
_CODE: Final = r"[a-z_$]++(?:(?:\.|::|->)[a-z_$]++)*+"
_DIGIT: Final = re.compile(r"\d")
_NAME_TAILS: Final = frozenset(ending[-3:] for ending in (*_ENDINGS, "pass"))
_PLAIN: Final = r"""[^\s"'`\\,;&<>(){}\[\]|]"""
_HEADER: Final = r"""[^\s"'\\,;<>${}\[\]()]"""
_USER: Final = r"""[^\s"'$<{]"""
_FLAG: Final = r"""[^\s"'`\\,;<>(){}\[\]]"""
_QUOTED: Final = r"""(?<==)"[^\s"'\\]{0,512}+\""""
# No value that is a word alone.
_NO_WORD: Final = r"(?![a-z]++(?!{more}))"


def _is_placeholder(value: str) -> bool:
    return value in _NO_VALUES or value == value[0] * len(value)


def _is_no_placeholder(_: re.Match[str], value: str) -> bool:
    return not _is_placeholder(value)


def _is_no_word(_: re.Match[str], value: str) -> bool:
    return not (value.isalpha() or _is_placeholder(value))


def _is_named_value(found: re.Match[str], value: str) -> bool:
    """Whether what stands behind a telling name is a value, not a placeholder, a word or code."""
    quote = found["quote"]
    if quote is None:
        return _is_literal(found, value)
    prose = value.count(" ") > 1 or "{" in value or "<" in value
    prose = prose or (quote == "`" and value.isalpha())
    return not (prose or _is_placeholder(value) or _is_name(value))


def _is_literal(found: re.Match[str], value: str) -> bool:
    """Whether a text without quotes is a value: tightly behind NAME=, or with a digit in it."""
    value = value.rstrip(".:!?")
    if len(value) < 4 or _is_placeholder(value) or _is_name(value):
        return False
    whole, start = found.string, found.start("value")
    if whole[start - 1] == "=" and whole[start - 2] not in " :":
        return _DIGIT.search(value) is not None or not _IDENTIFIER.match(value)
    if value.isdigit():
        return whole.startswith("pass", found.start()) and len(value) > 5
    if len(value) < 6 or _DIGIT.search(value) is None:
        return False
    # With spaces around an equals sign this may be code, where x2 is a variable.
    return "=" not in found["sep"] or not _IDENTIFIER.match(value)


def _is_name(value: str) -> bool:
    """Whether a value is itself a name of secrets; so long ones are none."""
    return value[-3:] in _NAME_TAILS and len(value) < 64 and is_secret_name(value)


_NAMED: Final = _Clue(
    "named",
    (":", "="),
    re.compile(
        rf"""(?:{_NAMES})\\?["'`]?\]?\s{{0,3}}(?P<sep>:=|=>|[:=](?![=:]))\s{{0,3}}"""
        rf"""(?P<quote>\\?["'`])?+(?P<value>{_NO_START}(?(quote)"""
        r"""[^\s,;:)"'`\\][^"'`\\\r\n]{3,511}"""
        # A value has a digit; tightly behind = it may instead be anything but an identifier.
        rf"""|(?:(?={_PLAIN[:-1]}\d]{{0,127}}+\d)|(?<==)(?!{_CODE}[.:!?]*+(?!{_PLAIN})))"""
        rf"""{_PLAIN}{{4,128}}+(?![(\[.])))"""
    ),
    _is_named_value,
)
_CLUES: Final = (
    _Clue(
        "url",
        ("://",),
        re.compile(
            rf"""://[^\s/:@?#"'<>`]{{0,256}}:(?P<value>{_NO_START}[^\s/"'<>`]{{1,512}})(?=@)"""
        ),
        _is_no_placeholder,
    ),
    _Clue(
        "hook",
        ("hook",),
        re.compile(
            r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/"
            r"|webhook\.office\.com/webhookb2/|discord(?:app)?\.com/api/webhooks/\d{1,30}/)"
            rf"(?P<value>{_NO_START}[a-z0-9_+/@-]{{20,512}})"
        ),
        _is_no_placeholder,
    ),
    _Clue(
        "header",
        ("authorization", "x-"),
        re.compile(
            r"""(?:authorization|x-[a-z-]{0,20}(?:key|token))\\?["']?\s{0,3}[:=]\s{0,3}\\?["']?"""
            r"""(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,3})?"""
            rf"""(?P<value>{_NO_START}{_NO_WORD.format(more=_HEADER)}{_HEADER}{{6,512}})"""
        ),
        _is_no_word,
    ),
    _Clue(
        "cookie",
        ("cookie",),
        re.compile(
            r"""cookie\\?["']?: {0,3}\\?["']?(?=[^\s"'\\<>{}()=]{1,64}=)"""
            # A value may be quoted. However many there are, they go on as cookies do.
            rf"""(?P<value>{_NO_START}(?:[^"'\\\r\n]|{_QUOTED}){{6,512}}+"""
            rf"""(?:{_QUOTED}|[^\s"'\\;]*+)"""
            rf"""(?:; {{0,3}}[^\s"'\\;=]{{1,64}}=(?:{_QUOTED}|[^\s"'\\;]*+))*+)"""
        ),
        _is_no_placeholder,
    ),
    _Clue(
        "bearer",
        ("bearer",),
        re.compile(
            r"\bbearer\s{1,3}(?P<value>(?=[a-z_.~+/-]{0,512}+\d)"
            rf"{_NO_START}[a-z0-9_.~+/=-]{{12,512}})"
        ),
        _is_no_placeholder,
    ),
    _Clue(
        "user",
        ("-u",),
        re.compile(
            r"""(?:\s-u|--user)[ =]{0,3}["']?[^\s:"'$<]{1,64}:"""
            rf"""(?P<value>{_NO_START}{_NO_WORD.format(more=_USER)}{_USER}{{3,512}})"""
        ),
        _is_no_word,
    ),
    _Clue(
        "flag",
        ("--",),
        re.compile(
            rf"""(?<![\w-])--[a-z-]{{0,30}}?(?:{_NAMES})\s{{1,3}}\\?["'`]?"""
            rf"""(?P<value>{_NO_START}{_NO_WORD.format(more=_FLAG)}{_FLAG}{{3,512}})"""
        ),
        _is_no_word,
    ),
    _NAMED,
)
# How what leads to a secret may go on behind another one, and how much of it stands before.
_LEAD_TAILS: Final = _NAME_TAILS | {"oks", "ook", "rer", "ser", "ena", "e\u00f1a"}
# The longest is an option: `--`, thirty characters and a name.
_LEAD_MAX: Final = 64
_REST: Final = re.compile(r"""[^\s"'`\\,;<>(){}\[\]]*+""")
# A token has sixteen characters of these in a row: looked for in bytes, several times as fast.
_TOKEN_BYTES: Final = bytes(
    ord("w") if byte < 128 and (chr(byte).isalnum() or chr(byte) in "_-") else ord(" ")
    for byte in range(256)
)
_LONG: Final = b"w" * 16
_WORDS: Final = re.compile(
    r"pass|pwd|secret|token|credential|key|authorization|bearer|cookie|contrase|kennwort|string"
    r"|://|hook|-u"
)
_ASCII_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ENVS: Final = ("env", "environ", "environment", "environmentvariables", "envvars")
_HARMLESS_ENV: Final = frozenset(
    ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "SHELL", "USER", "LOGNAME", "PWD", "TMPDIR", "TZ")
)


def redact_text(text: str) -> tuple[str, int]:
    """A text without the secrets in it, and how many there were."""
    lower = text.lower()
    tells = _may_lead(lower) and _WORDS.search(lower) is not None
    is_long = _LONG in text.encode("utf-8", "surrogatepass").translate(_TOKEN_BYTES)
    is_long = is_long or "Q~" in text  # the one token that may be cut by other characters
    if not tells and not is_long:
        return text, 0
    count = 0

    def drop(name: str) -> str:
        nonlocal count
        count += 1
        return f"[redacted:{name}]"

    if "-----BEGIN" in text:
        text = _KEY.sub(lambda found: _without_key(found, drop), text)
    if is_long:
        text = _TOKENS.sub(lambda found: drop(str(found.lastgroup)), text)
    if tells:
        lower = text.lower()
        for clue in _CLUES:
            if any(mark in lower for mark in clue.marks):
                text, dropped = _drop_behind(clue, text, lower)
                if dropped:
                    count, lower = count + dropped, text.lower()
    return text, count


def _may_lead(lower: str) -> bool:
    """Whether any clue has a mark here; written out because every text is asked this."""
    return (
        ":" in lower
        or "=" in lower
        or ("-" in lower and ("--" in lower or "-u" in lower))
        or "bearer" in lower
        or "hook" in lower
    )


def _without_key(found: re.Match[str], drop: Callable[[str], str]) -> str:
    begin, body, end = found.groups()
    if body.startswith("[redacted:") or (end is None and _KEY_BODY.search(body) is None):
        return found.group()  # somebody speaks of a key
    return f"{begin}{drop('private-key')}{end or ''}"


def _drop_behind(clue: _Clue, text: str, lower: str) -> tuple[str, int]:
    """A text without the values that this clue leads to, and how many there were."""
    if len(lower) != len(text):
        lower = text.translate(_ASCII_LOWER)  # places must be the same in both
    kept, done, place, mark = [], 0, 0, f"[redacted:{clue.name}]"
    while place >= 0:
        found, place = clue.find.finditer(lower, place), -1
        for one in found:
            start, end = one.span("value")
            if start < done:
                place = start
                break
            value = lower[start:end]
            if not clue.is_value(one, value):
                place = start  # the name of another may stand in it
                break
            kept.append(text[done:start])
            kept.append(mark)
            is_cut = end - start >= 128
            done = _REST.match(text, end).end() if is_cut else end  # type: ignore[union-attr]
            if is_cut or value[-5:].rstrip("=:>")[-3:] in _LEAD_TAILS:
                place = max(start, done - _LEAD_MAX)  # the name of another may end behind it
                break
    return ("".join((*kept, text[done:])), len(kept) // 2) if kept else (text, 0)


def is_secret_name(name: str) -> bool:
    """Whether a key, an option or a variable of this name holds a secret."""
    name = name.lower().replace("-", "_").replace(" ", "_")
    return name == "pass" or name.endswith(_ENDINGS)


def redact_json(value: Any) -> tuple[Any, int]:
    """A JSON value without secrets, by the names of its keys too; and how many there were."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return _redact_object(value)
    if isinstance(value, list | tuple):
        found = [redact_json(item) for item in value]
        return [item for item, _ in found], sum(count for _, count in found)
    return value, 0


def _redact_object(value: dict[str, Any]) -> tuple[dict[str, Any], int]:
    kept: dict[str, Any] = {}
    total = 0
    for key, item in value.items():
        if key.replace("_", "").lower() in _ENVS and isinstance(item, dict | list):
            kept[key], count = _redact_environment(item)
        elif _holds_secret(key, item):
            kept[key], count = "[redacted:key]", 1
        else:
            kept[key], count = redact_json(item)
        total += count
    return kept, total


def _holds_secret(key: str, item: Any) -> bool:
    """Whether what stands under this key goes, whatever it looks like."""
    if item in (None, "", [], {}) or isinstance(item, bool):
        return False
    if isinstance(item, str) and item.startswith("[redacted:"):
        return False
    if isinstance(item, int | float) and not key.lower().startswith("pass"):
        return False
    return is_secret_name(key)


def _redact_environment(item: dict[str, Any] | list[Any]) -> tuple[Any, int]:
    """What a process gets as its environment: names stay, values go."""
    if isinstance(item, dict):
        kept = {key: _environment_value(key, text) for key, text in item.items()}
        return kept, sum(kept[key] is not text for key, text in item.items())
    lines = [_environment_line(line) for line in item]
    return lines, sum(line is not before for line, before in zip(lines, item, strict=True))


def _environment_line(line: Any) -> Any:
    if not isinstance(line, str) or "=" not in line:
        return line
    name, _, text = line.partition("=")
    found = _environment_value(name, text)
    return line if found is text else f"{name}={found}"


def _environment_value(name: str, text: Any) -> Any:
    return text if not text or name.upper() in _HARMLESS_ENV else "[redacted:env]"
