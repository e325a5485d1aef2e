"""The control room: a web server beside a crawl that shows it in a browser. See decision 0068."""
