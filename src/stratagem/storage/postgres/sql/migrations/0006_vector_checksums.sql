-- A vector costs too much to be made again for a comparison, so each has a checksum. Those of older
-- versions have none until the read models are made anew.

ALTER TABLE vectors ADD COLUMN checksum bytea;
