"""HTML: `reader` reads pages, `elements` knows the URLs of each element, `tables` what each attribute means."""
