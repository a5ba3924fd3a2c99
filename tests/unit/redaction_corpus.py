"""Texts with a secret each, made from the shapes two public rule sets know; and harmless ones.

Every second shape is held out: its samples are measured, never looked at.
"""

import base64
import hashlib
import random
import string
import uuid
from pathlib import Path

HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
WEB = ALNUM + "-_"

# name: (prefix, alphabet, length, suffix)
SHAPES = {
    "aws key id": ("AKIA", UPPER, 16, ""),
    "aws temporary": ("ASIA", UPPER, 16, ""),
    "github classic": ("ghp_", ALNUM, 36, ""),
    "github app": ("ghs_", ALNUM, 36, ""),
    "github fine": ("github_pat_", ALNUM, 82, ""),
    "gitlab": ("glpat-", ALNUM, 20, ""),
    "slack bot": ("xoxb-123456789012-", ALNUM, 24, ""),
    "slack user": ("xoxp-123456789012-123456789012-", HEX, 32, ""),
    "slack hook": ("https://hooks.slack.com/services/T", ALNUM, 44, ""),
    "stripe": ("sk_live_", ALNUM, 24, ""),
    "stripe restricted": ("rk_test_", ALNUM, 24, ""),
    "openai": ("sk-proj-", WEB, 74, "T3BlbkFJ9zA"),
    "openai old": ("sk-", ALNUM, 20, "T3BlbkFJ12345678901234567890"),
    "anthropic": ("sk-ant-api03-", WEB, 93, "AA"),
    "google": ("AIza", WEB, 35, ""),
    "google oauth": ("ya29.", WEB, 60, ""),
    "npm": ("npm_", ALNUM, 36, ""),
    "pypi": ("pypi-AgEIcHlwaS5vcmc", WEB, 70, ""),
    "rubygems": ("rubygems_", HEX, 48, ""),
    "hugging face": ("hf_", string.ascii_letters, 34, ""),
    "sendgrid": ("SG.", ALNUM, 22, ".abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"),
    "sendinblue": ("xkeysib-", HEX, 64, "-aB3dE5gH7jK9mN1p"),
    "mailgun": ("key-", HEX, 32, ""),
    "mailchimp": ("", HEX, 32, "-us12"),
    "digitalocean": ("dop_v1_", HEX, 64, ""),
    "databricks": ("dapi", HEX, 32, ""),
    "doppler": ("dp.pt.", ALNUM, 43, ""),
    "shopify": ("shpat_", HEX, 32, ""),
    "vault": ("hvs.", WEB, 90, ""),
    "linear": ("lin_api_", ALNUM, 40, ""),
    "notion": ("ntn_", string.digits, 11, "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD1eF3gH"),
    "perplexity": ("pplx-", ALNUM, 48, ""),
    "groq": ("gsk_", ALNUM, 52, ""),
    "postman": ("PMAK-", HEX, 24, "-0123456789abcdef0123456789abcdef01"),
    "pulumi": ("pul-", HEX, 40, ""),
    "prefect": ("pnu_", ALNUM, 36, ""),
    "planetscale": ("pscale_tkn_", ALNUM, 43, ""),
    "readme": ("rdme_", HEX, 70, ""),
    "sentry": ("sntryu_", HEX, 64, ""),
    "shippo": ("shippo_live_", HEX, 40, ""),
    "square": ("sq0atp-", WEB, 22, ""),
    "atlassian": ("ATATT3", ALNUM, 186, ""),
    "new relic": ("NRAK-", UPPER, 27, ""),
    "dynatrace": ("dt0c01.", UPPER, 24, "." + "A1B2C3D4" * 8),
    "easypost": ("EZAK", ALNUM, 54, ""),
    "octopus": ("API-", UPPER, 26, ""),
    "twilio": ("SK", HEX, 32, ""),
    "telegram": ("123456789:AA", WEB, 33, ""),
    "discord": ("MT", ALNUM, 22, "1.Gx3kZ_.abcdefghijklmnopqrstuvwxyz01"),
    "age": ("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58, ""),
    "alibaba": ("LTAI", ALNUM, 20, ""),
    "artifactory": ("AKCp", ALNUM, 69, ""),
    "azure": ("a1B8Q~", WEB, 33, ""),
    "one password": ("A3-ABC123-", UPPER, 11, "-AB1CD-EF2GH-IJ3KL"),
    "grafana": ("glsa_", ALNUM, 32, "_1a2b3c4d"),
    "figma": ("figd_", WEB, 40, "1"),
    "webhook": ("whsec_", ALNUM, 32, ""),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJ", WEB, 40, ".c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"),
    "openshift": ("sha256~", WEB, 43, ""),
    "maxmind": ("", ALNUM, 6, "_aB3dE5gH7jK9mN1pQ3sT5vX7zA9cD_mmk"),
}
PLACES = (
    "{}",
    "I used {} for the call.",
    "X={}\n",
    '{{"value": "{}"}}',
    "export THING='{}'",
    "line\\n{}\\nmore",
    "curl https://api.example.com/v1?x={}&y=1",
)
# A value between the marks is the secret.
BESIDE = (
    "DB_PASSWORD=<<{w}{n}>>",
    "export AWS_SECRET_ACCESS_KEY=<<{b}>>",
    'password = "<<{w}!{n}>>"',
    "password: <<{w}{n}>>",
    '{{"client_secret": "<<{b}>>"}}',
    '{{\\"api_key\\": \\"<<{b}>>\\"}}',
    "api-key: '<<{b}>>'",
    "Authorization: Bearer <<{b}>>",
    "Authorization: Basic <<{b}>>",
    "-H 'X-Api-Key: <<{b}>>'",
    "Cookie: <<session={b}>>",
    "curl -u admin:<<{w}{n}>> https://example.com",
    "postgres://admin:<<{w}{n}>>@db.example.com:5432/app",
    "redis://:<<{b}>>@cache:6379/0",
    "https://bot:<<{b}>>@git.example.com/x.git",
    "mysql --password <<{w}{n}>> -h db",
    "tool --api-token=<<{b}>>",
    "https://example.com/cb?access_token=<<{b}>>&state=1",
    "AccountKey=<<{b}>>;EndpointSuffix=core.windows.net",
    "spring.datasource.password=<<{w}{n}>>",
    "const apiKey = '<<{b}>>';",
    "config.secret_key_base.secret => '<<{b}>>'",
    "secret: <<{b}>>",
    "TOKEN=<<{w}{n}>>",
    "PGPASSWORD=<<{w}-{w}>> psql",
    "//registry.npmjs.org/:_authToken=<<{b}>>",
    "machine example.com login me password: <<{w}{n}>>",
)
KEYS = (
    "RSA PRIVATE KEY",
    "PRIVATE KEY",
    "EC PRIVATE KEY",
    "OPENSSH PRIVATE KEY",
    "PGP PRIVATE KEY BLOCK",
)
WORDS = ("hunter", "correct-horse", "tr0ub4dor", "winter", "s3cr3t", "letmein")


def _random(rng, alphabet, length):
    return "".join(rng.choice(alphabet) for _ in range(length))


def _shaped(shapes, rng):
    for prefix, alphabet, length, suffix in shapes:
        for place in PLACES:
            secret = prefix + _random(rng, alphabet, length) + suffix
            yield place.format(secret), secret[-12:]


def _named(texts, rng):
    for text in texts:
        for word in WORDS:
            filled = text.format(w=word, n=rng.randint(10, 9999), b=_random(rng, ALNUM, 31) + "7")
            secret = filled.partition("<<")[2].partition(">>")[0]
            yield filled.replace("<<", "").replace(">>", ""), secret


def _keys(names, rng):
    for name in names * 4:
        body = "\n".join(_random(rng, ALNUM + "+/", 64) for _ in range(rng.randint(3, 9)))
        yield f"key:\n-----BEGIN {name}-----\n{body}\n-----END {name}-----\n", body[-40:]
        yield f"-----BEGIN {name}-----\\n{body[:64]}\\n", body[:40]


def _half(first):
    """Pairs of a text and the secret in it, always the same: every second shape."""
    rng = random.Random(20261 + first)
    yield from _shaped(list(SHAPES.values())[first::2], rng)
    yield from _named(BESIDE[first::2], rng)
    yield from _keys(KEYS[first::2], rng)


def developed():
    """The samples rules are developed against."""
    return list(_half(0))


def held_out():
    """The samples that are only measured."""
    return list(_half(1))


def harmless():
    """Texts in which nothing is secret."""
    rng = random.Random(7)
    found = []
    for number in range(400):
        data = rng.randbytes(32)
        digest = hashlib.sha256(data).hexdigest()
        found += [digest, f"sha256:{digest}", f'{{"args_sha256": "{digest}", "id": "x"}}']
        found.append(
            f"commit {hashlib.sha1(data).hexdigest()}\nindex {digest[:7]}..{digest[7:14]} 100644"
        )
        found.append(str(uuid.UUID(bytes=data[:16], version=4)))
        found.append(f"request {uuid.UUID(bytes=data[16:], version=4)} took {number} ms")
    for size in (300, 5_000, 60_000):
        for head in (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a"):
            for _ in range(15):
                image = base64.b64encode(head + rng.randbytes(size)).decode()
                found += [
                    f"data:image/png;base64,{image}",
                    base64.encodebytes(rng.randbytes(size)).decode(),
                ]
    root = Path(__file__).parents[2]
    found += [page.read_text() for page in sorted(root.glob("src/**/*.py"))]
    found += [page.read_text() for page in sorted(Path(random.__file__).parent.glob("*.py"))]
    return found + list(SAYINGS)


SAYINGS = (
    "The token is refreshed every hour; the secret stays in the vault.",
    "password: string; token: Token; secret?: Uint8Array",
    "def login(user: str, password: str, token: str | None = None) -> Token:",
    "api_key = os.environ['API_KEY']",
    "token = get_token(user)",
    "api_key=settings.api_key",
    "password=$DB_PASSWORD",
    "password: ${{ secrets.DB_PASSWORD }}",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <your token>",
    "--password PASSWORD",
    "max_tokens: 4096, next_token: null",
    "http://localhost:8080/@scope/package",
    "git@github.com:owner/repo.git",
    "https://user@example.com/",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    "A file that begins with -----BEGIN PRIVATE KEY----- is a private key.",
    "const token = tokens[index + 1];",
    'raise ValueError("password must not be empty")',
    "primary_key=True, foreign_key=other.id, key=lambda x: x[1]",
    "class sk-toggleable__content sk-container-id-1",
)
