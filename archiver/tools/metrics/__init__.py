"""Metrics of a crawl for Prometheus and other programs that read OpenMetrics."""
