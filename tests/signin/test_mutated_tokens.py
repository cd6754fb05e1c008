"""No change to a token makes one that is accepted: bits, characters, parts, claims and headers, by the thousand."""

import base64
import json
import random
from collections.abc import Iterator

import pytest
from dragoman.auth import InvalidToken, IssuerUnreachable
from dragoman.auth.verifier import Verifier
from issuer import ALGORITHMS, KEYS, Issuer, encoded, sign_octets

FEW, MANY = 3_000, 100_000
ODD = ("none", "HS256", "", None, 0, True, [], {}, "at+jwt", "rsa", "ec", "../x", "\x00", 1e308)


@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=[pytest.mark.nightly, pytest.mark.timeout(3600)])])
async def test_no_mutated_token_is_accepted(issuer: Issuer, number: int) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    good = [issuer.token(algorithm, groups=["analysts"], scope="a b") for algorithm in ALGORITHMS]
    verifier = Verifier(issuer.settings())
    try:
        for token in good:
            assert await verifier.principal(token)
        for token in mutants(good, chance, number):
            assert not await accepts(verifier, token), f"seed {seed}: {token}"
    finally:
        await verifier.aclose()


async def accepts(verifier: Verifier, token: str) -> bool:
    try:
        await verifier.principal(token)
    except (InvalidToken, IssuerUnreachable):
        return False
    return True


def mutants(good: list[str], chance: random.Random, number: int) -> Iterator[str]:
    """Yield texts that mean another token than any of the good ones."""
    meanings = {meaning(token) for token in good}
    ways = (change_character, change_bit, swap_parts, change_object, cut, repeat, repeat_member, encode_otherwise)
    while number:
        token = chance.choice(ways)(chance.choice(good), good, chance)
        if meaning(token) not in meanings:
            number -= 1
            yield token


def meaning(token: str) -> tuple[bytes | str, ...]:
    """Return the bytes that a token's parts stand for: base64 has several spellings of the last of them."""
    try:
        return tuple(base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True) for part in token.split("."))
    except ValueError:
        return (token,)


def change_character(token: str, _: list[str], chance: random.Random) -> str:
    place = chance.randrange(len(token))
    return token[:place] + chance.choice("ABCXYZabcxyz0189-_.=+/ \x00\xff") + token[place + 1 :]


def change_bit(token: str, _: list[str], chance: random.Random) -> str:
    parts = token.split(".")
    which = chance.randrange(3)
    data = bytearray(base64.urlsafe_b64decode(parts[which] + "=" * (-len(parts[which]) % 4)))
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    parts[which] = encoded(bytes(data))
    return ".".join(parts)


def swap_parts(token: str, good: list[str], chance: random.Random) -> str:
    """Take each part of any token, or none of it."""
    return ".".join(chance.choice([*good, ".."]).split(".")[place] for place in range(3))


def change_object(token: str, _: list[str], chance: random.Random) -> str:
    """Change, add or remove a member of the header or the claims, and keep the signature."""
    parts = token.split(".")
    which = chance.randrange(2)
    read = json.loads(base64.urlsafe_b64decode(parts[which] + "=" * (-len(parts[which]) % 4)))
    name = chance.choice([*read, "alg", "kid", "crit", "b64", "zip", "jwk", "x5c"])
    if chance.random() < 0.3:
        read.pop(name, None)
    else:
        read[name] = chance.choice(ODD)
    parts[which] = encoded(json.dumps(read).encode())
    return ".".join(parts)


def repeat_member(token: str, _: list[str], chance: random.Random) -> str:
    """Give a member of the header or the claims twice, and sign it with the right key."""
    parts, which = read_parts(token), chance.randrange(2)
    read = json.loads(parts[which])
    name = chance.choice([*read])
    again = json.dumps({name: chance.choice([read[name], *ODD, "https://evil.example"])})[1:-1]
    members = parts[which].decode()[1:-1]
    escaped = again.replace(name[0], f"\\u{ord(name[0]):04x}", 1)  # another spelling of the same name
    more = chance.choice((again, escaped))
    parts[which] = "{{{}}}".format(", ".join(chance.sample([members, more], 2))).encode()
    return sign_again(token, parts)


def encode_otherwise(token: str, _: list[str], chance: random.Random) -> str:
    """Write the header or the claims in another encoding than UTF-8, or as no JSON, and sign it with the right key."""
    parts, which = read_parts(token), chance.randrange(2)
    text = parts[which].decode()
    other = f'{text[:-1]}, "name": "ü"}}'.encode("latin-1")
    octets = [text.encode(code) for code in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-8-sig")]
    constants = [f'{text[:-1]}, "n": {constant}}}'.encode() for constant in ("NaN", "Infinity", "-Infinity")]
    parts[which] = chance.choice([*octets, *constants, other, b"\xff" + parts[which], parts[which] + b"\0"])
    return sign_again(token, parts)


def read_parts(token: str) -> list[bytes]:
    return [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")[:2]]


def sign_again(token: str, parts: list[bytes]) -> str:
    named = json.loads(read_parts(token)[0])
    header, payload = parts
    return sign_octets(header, payload, named["alg"], KEYS[named["kid"]])


def cut(token: str, _: list[str], chance: random.Random) -> str:
    return token[chance.randrange(len(token)) :] if chance.random() < 0.5 else token[: chance.randrange(len(token))]


def repeat(token: str, _: list[str], chance: random.Random) -> str:
    place = chance.randrange(len(token))
    return token[:place] + token[place : place + chance.randrange(1, 40)] + token[place:]
