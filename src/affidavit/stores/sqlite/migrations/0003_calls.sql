-- What became of each call that reached a server.
CREATE TABLE IF NOT EXISTS calls (
  log_index         INTEGER PRIMARY KEY,
  state             TEXT NOT NULL,
  tool              TEXT NOT NULL,
  caller            TEXT,
  duration_us       INTEGER NOT NULL,
  outcome           TEXT NOT NULL,
  args_sha256       TEXT,
  args_sha256_salt  BLOB,
  first_index       INTEGER,
  last_index        INTEGER,
  at                INTEGER NOT NULL
) STRICT;

CREATE TRIGGER IF NOT EXISTS calls_refuses_update BEFORE UPDATE ON calls
BEGIN SELECT RAISE(ABORT, 'calls are append-only'); END;
CREATE TRIGGER IF NOT EXISTS calls_refuses_delete BEFORE DELETE ON calls
BEGIN SELECT RAISE(ABORT, 'calls are append-only'); END;

-- The lower-level record of what happened to sessions and settings and of calls, oldest first.
DROP VIEW IF EXISTS audit_events;
CREATE VIEW audit_events AS
SELECT log.log_index,
       json_extract(CAST(log.entry AS TEXT), '$.at') AS at,
       json_extract(CAST(log.entry AS TEXT), '$.kind') AS kind,
       json_extract(CAST(log.entry AS TEXT), '$.body') AS body,
       json_extract(CAST(log.entry AS TEXT), '$.src') AS src
FROM (
  SELECT 0 AS log_index
  UNION ALL SELECT log_index FROM sessions
  UNION ALL SELECT ended_index FROM sessions WHERE ended_index IS NOT NULL
  UNION ALL SELECT log_index FROM seals
  UNION ALL SELECT log_index FROM setting_changes
  UNION ALL SELECT log_index FROM calls
) AS events
JOIN log ON log.log_index = events.log_index
ORDER BY log.log_index;
