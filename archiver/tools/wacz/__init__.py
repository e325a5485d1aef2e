"""WACZ 1.1.1: a collection, or a part of one, as one file that replayweb.page opens. Source: the specification."""
