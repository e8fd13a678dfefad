-- Long texts are indexed by passage: a row for each. `chars` is how long a version's text is. Texts
-- that an older version indexed have one row; the version of the read models has them made anew.

ALTER TABLE texts ADD COLUMN passage smallint NOT NULL DEFAULT 0;
ALTER TABLE texts DROP CONSTRAINT texts_pkey;
ALTER TABLE texts ADD PRIMARY KEY (workspace, seq, passage);
ALTER TABLE versions ADD COLUMN chars integer;
