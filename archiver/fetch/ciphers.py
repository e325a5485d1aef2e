"""The names of TLS cipher suites: OpenSSL's own, and those of IANA, which WARC-Cipher-Suite wants."""

# OpenSSL writes TLS 1.3 suites by their IANA names, and earlier ones by its own.
_KEY_EXCHANGE = {"ECDHE-ECDSA": "ECDHE_ECDSA", "ECDHE-RSA": "ECDHE_RSA", "DHE-RSA": "DHE_RSA", "DHE-DSS": "DHE_DSS"}
_BULK = {
    "AES128-GCM-SHA256": "AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "AES_256_GCM_SHA384",
    "CHACHA20-POLY1305": "CHACHA20_POLY1305_SHA256",
    "AES128-SHA256": "AES_128_CBC_SHA256",
    "AES256-SHA384": "AES_256_CBC_SHA384",
    "AES256-SHA256": "AES_256_CBC_SHA256",
    "AES128-SHA": "AES_128_CBC_SHA",
    "AES256-SHA": "AES_256_CBC_SHA",
    "AES128-CCM": "AES_128_CCM",
    "AES256-CCM": "AES_256_CCM",
}


def iana_cipher(name: str) -> str:
    """The IANA name of a cipher suite that OpenSSL calls *name*; *name* itself where there is no rule for it."""
    if name.startswith("TLS_"):
        return name
    exchange = next((key for key in _KEY_EXCHANGE if name.startswith(key + "-")), None)
    bulk = name[len(exchange) + 1 :] if exchange else name
    if bulk not in _BULK:
        return name
    return f"TLS_{_KEY_EXCHANGE[exchange] if exchange else 'RSA'}_WITH_{_BULK[bulk]}"
