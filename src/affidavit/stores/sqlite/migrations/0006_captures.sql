-- What other programs call a session, which channels were on, and what was lost.
CREATE TABLE IF NOT EXISTS session_links (
  log_index    INTEGER PRIMARY KEY,
  session_id   TEXT NOT NULL,
  source       TEXT NOT NULL,
  external_id  TEXT NOT NULL,
  at           INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_links_external ON session_links(source, external_id, log_index);
CREATE INDEX IF NOT EXISTS idx_links_session ON session_links(session_id, log_index);

CREATE TRIGGER IF NOT EXISTS session_links_refuses_update BEFORE UPDATE ON session_links
BEGIN SELECT RAISE(ABORT, 'session links are append-only'); END;
CREATE TRIGGER IF NOT EXISTS session_links_refuses_delete BEFORE DELETE ON session_links
BEGIN SELECT RAISE(ABORT, 'session links are append-only'); END;

CREATE TABLE IF NOT EXISTS captures (
  log_index        INTEGER PRIMARY KEY,
  state            TEXT NOT NULL,
  channel          TEXT NOT NULL,
  source           TEXT NOT NULL,
  version          TEXT,
  session_id       TEXT,
  settings_sha256  TEXT,
  event_count      INTEGER,
  at               INTEGER NOT NULL
) STRICT;

CREATE INDEX IF NOT EXISTS idx_captures_session ON captures(session_id, log_index)
  WHERE session_id IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS captures_refuses_update BEFORE UPDATE ON captures
BEGIN SELECT RAISE(ABORT, 'captures are append-only'); END;
CREATE TRIGGER IF NOT EXISTS captures_refuses_delete BEFORE DELETE ON captures
BEGIN SELECT RAISE(ABORT, 'captures are append-only'); END;

CREATE TABLE IF NOT EXISTS dropped_events (
  log_index    INTEGER PRIMARY KEY,
  channel      TEXT NOT NULL,
  event_count  INTEGER NOT NULL,
  from_ms      INTEGER NOT NULL,
  to_ms        INTEGER NOT NULL,
  at           INTEGER NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS dropped_events_refuses_update BEFORE UPDATE ON dropped_events
BEGIN SELECT RAISE(ABORT, 'dropped events are append-only'); END;
CREATE TRIGGER IF NOT EXISTS dropped_events_refuses_delete BEFORE DELETE ON dropped_events
BEGIN SELECT RAISE(ABORT, 'dropped events are append-only'); END;
