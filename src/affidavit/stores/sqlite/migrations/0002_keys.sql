-- Which keys sign for the log, and under which name.
CREATE TABLE IF NOT EXISTS key_changes (
  log_index    INTEGER PRIMARY KEY,
  state        TEXT NOT NULL,
  vkey         TEXT NOT NULL,
  changed_by   TEXT,
  reason       TEXT,
  reason_salt  BLOB,
  at           INTEGER NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS key_changes_refuses_update BEFORE UPDATE ON key_changes
BEGIN SELECT RAISE(ABORT, 'key changes are append-only'); END;
CREATE TRIGGER IF NOT EXISTS key_changes_refuses_delete BEFORE DELETE ON key_changes
BEGIN SELECT RAISE(ABORT, 'key changes are append-only'); END;

CREATE TABLE IF NOT EXISTS origin_changes (
  log_index    INTEGER PRIMARY KEY,
  old_origin   TEXT NOT NULL,
  old_size     INTEGER NOT NULL,
  old_root     TEXT NOT NULL,
  origin       TEXT NOT NULL,
  reason       TEXT,
  reason_salt  BLOB,
  at           INTEGER NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS origin_changes_refuses_update BEFORE UPDATE ON origin_changes
BEGIN SELECT RAISE(ABORT, 'origin changes are append-only'); END;
CREATE TRIGGER IF NOT EXISTS origin_changes_refuses_delete BEFORE DELETE ON origin_changes
BEGIN SELECT RAISE(ABORT, 'origin changes are append-only'); END;
