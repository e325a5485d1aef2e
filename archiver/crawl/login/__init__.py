"""Passwords, handshakes and login forms: how a crawl gets to pages that only users see."""
