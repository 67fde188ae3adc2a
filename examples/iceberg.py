"""From an Iceberg table to a released one: bags of words of the rows that a snapshot has.

    python iceberg.py private.comments released.comments words.txt staging releases

The catalogue is the one that pyiceberg is configured for. `staging` gets a copy of the private
rows: keep it where the private table is kept, and delete it once the release is there.
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

import quietcorpus as qc

TEXT, ID, KEEP = "text", "ticket", ["product"]


def main(private: str, released: str, vocabulary: str, staging: str, releases: str) -> None:
    """Release the rows of a snapshot once, though this may be run again after a failure."""
    catalog = load_catalog()
    if catalog.table_exists(released):
        sys.exit(f"{released} is there already")
    table = catalog.load_table(private)
    snapshot = table.current_snapshot()
    if snapshot is None:
        sys.exit(f"{private} has no rows")
    name = f"{private}-{snapshot.snapshot_id}"
    rows = Path(staging) / f"{name}.parquet"
    if not rows.exists():
        stage(table, snapshot.snapshot_id, rows)
    spec = {
        "release": name,
        "input": {"path": str(rows), "text": TEXT, "id": ID, "keep": KEEP},
        "output": f"{releases}/{name}",
        "mechanism": {
            "kind": "bag-of-words",
            "precision": 24,
            "epsilon": 2,
            "vocabulary": {"public": vocabulary},
            "compression": {"method": "none"},
        },
    }
    card = qc.release(spec, if_exists="ok")
    print(card.guarantee.statement)
    publish(catalog, released, card, f"{releases}/{name}")


def stage(table: Table, snapshot: int, rows: Path) -> None:
    """Copy what the release reads; rows that were deleted are not among it.

    The copy stays as it is: to a file that is written again, a repeated run would be another one.
    """
    scan = table.scan(snapshot_id=snapshot, selected_fields=(TEXT, ID, *KEEP))
    batches = scan.to_arrow_batch_reader()
    partial = rows.with_suffix(".partial")
    with pq.ParquetWriter(partial, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    partial.rename(rows)


def publish(catalog: Catalog, released: str, card: qc.Card, output: str) -> None:
    """Make a table of the release's own files, which are not copied, at once or not at all."""
    schema = qc.load(output).rows.schema
    about = {"quietcorpus.release": card.release, "guarantee": card.guarantee.statement}
    files = [f"{output}/{file.path}" for file in card.files if file.path.startswith("data/")]
    with catalog.create_table_transaction(released, schema, properties=about) as made:
        made.add_files([str(Path(file).absolute()) for file in files])


if __name__ == "__main__":
    main(*sys.argv[1:])
