-- Brings a file of version 2, whose conversations had no titles, to the tables of
-- schema.sql.
ALTER TABLE conversation ADD COLUMN title TEXT NOT NULL DEFAULT '';
