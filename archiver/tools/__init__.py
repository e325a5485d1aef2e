"""Programs that read a finished or running archive: verify, wacz, ingest, export, report, replay."""
