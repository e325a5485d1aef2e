"""Challenges and answers: the examples of RFC 9110, 7616 and 7617, hostile fields, and protection spaces."""

from base64 import b64decode
from hashlib import md5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.config.auth import AUTH, AuthRule
from archiver.config.host_rules import HOST_RULE, table_of
from archiver.config.secrets import SecretKind, SecretSource
from archiver.errors import ConfigError
from archiver.http.auth import HASHES, Credentials, DigestUse, basic, digest, is_stale, next_nonce, sent_in, strongest
from archiver.http.challenges import MOST_CHALLENGES, MOST_TEXT, Challenge, challenges

MUFASA = (
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={}, '
    'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)
MUFASA_USE = DigestUse("GET", "/dir/index.html", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", 1)
DOE = (
    'Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, '
    'nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", '
    'opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true'
)


def answer(field: str, credentials: Credentials, use: DigestUse) -> Challenge:
    (challenge,) = challenges([field])
    return challenges([digest(challenge, credentials, use).decode("latin-1")])[0]


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_the_examples_of_rfc_7616_section_3_9_1(algorithm: str, response: str) -> None:
    found = answer(MUFASA.format(algorithm), Credentials("Mufasa", "Circle of Life"), MUFASA_USE)
    assert dict(found.parameters) == {
        "username": "Mufasa",
        "realm": "http-auth@example.org",
        "uri": "/dir/index.html",
        "algorithm": algorithm,
        "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        "nc": "00000001",
        "cnonce": MUFASA_USE.client_nonce,
        "qop": "auth",
        "response": response,
        "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
    }


@pytest.mark.skipif("SHA-512-256" not in HASHES, reason="OpenSSL here has no SHA-512/256")
def test_a_hashed_user_name_as_erratum_4897_of_rfc_7616_has_it() -> None:
    use = DigestUse("GET", "/doe.json", "NTg6RKcb9boFIAS3KrFK9BGeh+niz/sm", 1)
    found = answer(DOE, Credentials("Jäsøn Doe", "Secret, or not?"), use)
    assert found.get("username") == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b"
    assert found.get("userhash") == "true"


def test_the_example_of_rfc_2617_section_3_5_and_one_without_qop() -> None:
    field = 'Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093"'
    use = DigestUse("GET", "/dir/index.html", "0a4f113b", 1)
    credentials = Credentials("Mufasa", "Circle Of Life")
    assert answer(field + ', qop="auth,auth-int"', credentials, use).get("response") == (
        "6629fae49393a05397450978507c4ef1"
    )
    old = answer(field, credentials, use)
    assert old.get("response") == "670fd8c2df070c60b045671b8b24ff02"
    assert not old.get("nc")
    assert not old.get("cnonce")


def test_a_session_key_depends_on_the_nonces() -> None:
    found = answer(MUFASA.format("MD5-sess"), Credentials("Mufasa", "Circle of Life"), MUFASA_USE)
    assert found.get("algorithm") == "MD5-sess"
    assert found.get("response") == "e783283f46242139c486a698fec7211d"


@pytest.mark.parametrize(
    ("charset", "sent"),
    [("", b'username="J\xc3\xa4 \\"x\\""'), (", charset=UTF-8", b"username*=UTF-8''J%C3%A4%20%22x%22")],
)
def test_a_user_name_outside_of_ascii(charset: str, sent: bytes) -> None:
    (challenge,) = challenges([f'Digest realm="a", nonce="b"{charset}'])
    assert sent in digest(challenge, Credentials('Jä "x"', "p"), MUFASA_USE)


@pytest.mark.parametrize(
    ("user", "password", "value"),
    [
        ("Aladdin", "open sesame", b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),  # RFC 7617 §2
        ("test", "123\u00a3", b"Basic dGVzdDoxMjPCow=="),  # §2.1
    ],
)
def test_the_examples_of_rfc_7617(user: str, password: str, value: bytes) -> None:
    assert basic(Credentials(user, password)) == value
    assert password not in repr(Credentials(user, password))


REALM = (("realm", "x"),)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (['Basic realm="x"'], [Challenge("basic", REALM)]),
        (["BASIC REALM = x"], [Challenge("basic", REALM)]),
        (['Negotiate, NTLM , Basic realm="x"'], [Challenge("negotiate"), Challenge("ntlm"), Challenge("basic", REALM)]),
        (["Negotiate oQc=, , Basic"], [Challenge("negotiate", token="oQc="), Challenge("basic")]),
        (["Negotiate", 'Basic realm="x"'], [Challenge("negotiate"), Challenge("basic", REALM)]),
        (
            ['Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="x"'],  # RFC 9110 §11.6.1
            [
                Challenge("newauth", (("realm", "apps"), ("type", "1"), ("title", 'Login to "apps"'))),
                Challenge("basic", REALM),
            ],
        ),
        (['Basic realm="a, Digest b=c"'], [Challenge("basic", (("realm", "a, Digest b=c"),))]),
        (["Basic realm=two words"], [Challenge("basic")]),
        (['Basic realm="open'], [Challenge("basic")]),
        (['Basic realm="a\rb"'], []),
        ([""], []),
        (['"'], []),
    ],
)
def test_challenges_are_read_from_one_or_several_fields(fields: list[str], found: list[Challenge]) -> None:
    assert challenges(fields) == found


@pytest.mark.parametrize(
    ("fields", "scheme", "algorithm"),
    [
        (['Basic realm="x"', MUFASA.format("MD5"), MUFASA.format("SHA-256")], "digest", "SHA-256"),
        ([f'Basic realm="x", {MUFASA.format("MD5")}'], "digest", "MD5"),
        ([MUFASA.format("TIGER"), "Basic"], "basic", ""),
        (['Digest realm="x", nonce="y", qop="auth-int"', "Basic"], "digest", ""),
        (['Digest realm="x"', "Basic"], "basic", ""),
        (["Negotiate", "Bearer"], None, ""),
    ],
)
def test_the_strongest_challenge_is_answered(fields: list[str], scheme: str | None, algorithm: str) -> None:
    found = strongest(fields)
    assert (found and found.scheme) == scheme
    assert found is None or found.get("algorithm") == algorithm


def test_a_stale_nonce_is_not_a_wrong_password() -> None:
    stale, other = challenges([MUFASA.format("MD5") + ", stale=TRUE", MUFASA.format("MD5") + ', stale="no"'])
    assert is_stale(stale)
    assert not is_stale(other)


@given(st.lists(st.text(alphabet='Basic Digest="\\,\t~é\0\r=/', max_size=60), max_size=5))
def test_no_field_raises_an_error_and_no_control_character_gets_through(fields: list[str]) -> None:
    for each in challenges(fields):
        values = "".join((each.scheme, each.token, *(part for pair in each.parameters for part in pair)))
        assert not any(letter < " " and letter != "\t" for letter in values)


TEXT = st.text(alphabet=st.characters(codec="latin-1", exclude_categories=["Cc"]))


@given(st.dictionaries(st.from_regex(r"\A[a-z]{1,8}\Z"), TEXT, min_size=1, max_size=8))
def test_what_is_quoted_is_read_back(parameters: dict[str, str]) -> None:
    escaped = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in parameters.items()}
    field = "Any " + ", ".join(f'{name}="{value}"' for name, value in escaped.items())
    assert challenges([field]) == [Challenge("any", tuple(parameters.items()))]


def test_long_and_many_fields_are_bounded() -> None:
    assert len(challenges(["Basic, " * 1000])) == MOST_CHALLENGES
    assert challenges(["x" * MOST_TEXT, "Basic"]) == [Challenge("x" * MOST_TEXT)]
    assert len(challenges(['Basic realm="' + '\\"' * 100_000])) == 1


def test_what_a_request_sent() -> None:
    assert sent_in(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nauthorization: Basic x") is None
    assert sent_in(b"GET / HTTP/1.1\r\nauthorization: Basic eDp5\r\n\r\n") == Challenge("basic")
    sent = sent_in(b'GET / HTTP/1.1\r\nAuthorization: Digest realm="x", nonce="n"\r\n\r\n')
    assert sent is not None
    assert sent.get("nonce") == "n"


@pytest.mark.parametrize(
    ("text", "space", "user"),
    [
        ("https://example.org/private/ me:env:PW", "https://example.org/private/", "me"),
        ("HTTPS://Example.org:443 me@x:env:PW", "https://example.org/", "me@x"),
        ("me:env:PW", "", "me"),
        ("https://example.org/ CORP\\me too:env:PW", "https://example.org/", "CORP\\me too"),
    ],
)
def test_rules_are_read_and_written_back(text: str, space: str, user: str) -> None:
    rule = AUTH.parse(text)
    assert rule == AuthRule(space, user, SecretSource(SecretKind.ENV, "PW"))
    assert AUTH.parse(AUTH.write(rule)) == rule


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/ me:hunter2",
        "https://example.org/ hunter2",
        "https://me:hunter2@example.org/ me:env:PW",
        "https://example.org/?hunter2 me:env:PW",
        "https://hunter2.example.org/",
        "me:hunter2",
        "hunter2",
        ":env:hunter2",
    ],
)
def test_other_texts_are_refused_and_not_shown(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        AUTH.parse(text)
    assert "hunter2" not in str(refused.value)
    assert "env:NAME" in str(refused.value)


@pytest.mark.parametrize(
    ("space", "address", "covered"),
    [
        ("https://example.org/", "https://example.org/a", True),
        ("https://example.org/", "http://example.org/a", False),
        ("https://example.org/", "https://example.org:8443/a", False),
        ("https://example.org/", "https://example.org.evil.example/", False),
        ("https://example.org/a", "https://example.org/a", True),
        ("https://example.org/a", "https://example.org/a?b", True),
        ("https://example.org/a", "https://example.org/a/b", True),
        ("https://example.org/a", "https://example.org/ab", False),
        ("https://example.org/a/", "https://example.org/a", False),
    ],
)
def test_what_a_protection_space_covers(space: str, address: str, *, covered: bool) -> None:
    assert AuthRule(space, "me", SecretSource(SecretKind.ENV, "PW")).covers(address) == covered


def test_a_rule_of_hosts_names_hosts_of_one_owner() -> None:
    rule = HOST_RULE.parse("*.example.org auth='me:env:PW'")
    assert table_of(rule) == {"match": "*.example.org", "auth": ["me:env:PW"]}
    assert HOST_RULE.parse("http://127.0.0.1:80 auth=me:env:PW")
    for match in ("*", "*.org", "www.*.org", "example.*", "https://*", "*example.org"):
        with pytest.raises(ConfigError, match="may match hosts of others"):
            HOST_RULE.parse(f"{match} auth=me:env:PW")


def test_basic_credentials_are_base64_of_utf_8() -> None:
    assert b64decode(basic(Credentials("jä", "ß")).removeprefix(b"Basic ")).decode() == "jä:ß"


@pytest.mark.parametrize(
    ("fields", "nonce"),
    [
        ([], ""),
        (['rspauth="a", qop=auth, nextnonce="n2", nc=00000001'], "n2"),
        (['qop=auth nextnonce="n2"'], ""),
        (['nextnonce="a\r\nb"'], ""),
    ],
)
def test_the_next_nonce_of_an_answer(fields: list[str], nonce: str) -> None:
    assert next_nonce(fields) == nonce


def test_integrity_is_answered_if_nothing_else_is_offered() -> None:
    field = 'Digest realm="r", nonce="n", qop="auth-int"'
    found = answer(field, Credentials("me", "pw"), DigestUse("POST", "/", "c", 1, b"body"))
    key, body = md5(b"me:r:pw").hexdigest(), md5(b"body").hexdigest()
    signed = md5(f"POST:/:{body}".encode()).hexdigest()
    assert found.get("qop") == "auth-int"
    assert found.get("response") == md5(f"{key}:n:00000001:c:auth-int:{signed}".encode()).hexdigest()
